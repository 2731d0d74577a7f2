"""Pipeline runs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from detent.errors import DetentError, IdConflict, InvalidTransition, LeaseLost, NotFound, RunInProgress
from detent.lifecycle.library import PIPELINE_RUN
from detent.model.pipeline_records import (
    NewPage,
    NewPartition,
    NewPipelineRun,
    PageStored,
    PartitionRow,
    PipelineRunRow,
    Portion,
    PrunedRuns,
    WatermarkRow,
)
from detent.model.records import Moved
from detent.store.pipeline_rules import RETRIED_FROM, not_retried, wrong_state
from detent.store.postgres.statement import Row, Statement, moment, named, numbers, texts, utc

__all__ = [
    "gone_done",
    "gone_take",
    "page_store",
    "partition_list",
    "pipeline_complete",
    "pipeline_fan_out",
    "pipeline_force",
    "pipeline_get",
    "pipeline_list",
    "pipeline_prune",
    "pipeline_retry",
    "pipeline_start",
    "portion_done",
    "portion_take",
    "watermark_list",
]

_FIELDS = PipelineRunRow.__struct_fields__
_PARTITION_FIELDS = PartitionRow.__struct_fields__
_START = """
SELECT answer, run_id
  FROM detent.pipeline_start_v1(%s::bigint, %s::text, %s::text, %s::text, %s::text, %s::boolean, %s::boolean, %s::text,
                                %s::text, %s::boolean, %s::text, %s::smallint, %s::integer, %s::integer, %s::bigint)
"""
_FAN_OUT = """
SELECT instead, state, moved
  FROM detent.pipeline_fan_out_v1(%s::bigint, %s::bigint, %s::integer, %s::integer, %s::integer[], %s::text[],
                                  %s::text[], %s::bigint[])
"""
_PAGE = """
SELECT instead, stored, next_offset, last_page
  FROM detent.page_store_v1(%s::bigint, %s::integer, %s::bigint, %s::integer, %s::text, %s::text, %s::text[],
                            %s::text[])
"""
_TAKE = """
SELECT instead, kind, n, tries, keys, datas
  FROM detent.portion_take_v1(%s::bigint, %s::bigint, %s::integer, %s::integer)
"""
_DONE = "SELECT instead FROM detent.portion_done_v1(%s::bigint, %s::integer, %s::bigint, %s::integer)"
_GONE = "SELECT instead, keys FROM detent.gone_take_v1(%s::bigint, %s::bigint, %s::integer, %s::integer)"
_GONE_DONE = "SELECT instead, gone FROM detent.gone_done_v1(%s::bigint, %s::bigint, %s::integer, %s::text[])"
_COMPLETE = "SELECT instead, moved FROM detent.pipeline_complete_v1(%s::bigint, %s::bigint, %s::integer)"
_FORCE = "SELECT detent.pipeline_force_v1(%s::bigint, %s::text, %s::text)"
_RETRY = """
SELECT from_state, to_state, instead, other, watermark
  FROM detent.pipeline_retry_v1(%s::bigint, %s::text, %s::text)
"""
_GET = f"SELECT {', '.join(_FIELDS)} FROM detent.pipeline_get_v1(%s::bigint)"
_LIST = f"""
SELECT {", ".join(_FIELDS)}
  FROM detent.pipeline_list_v1(%s::text, %s::text, %s::text, %s::bigint, %s::integer)
"""
_PARTITIONS = f"""
SELECT {", ".join(_PARTITION_FIELDS)}
  FROM detent.partition_list_v1(%s::bigint, %s::text, %s::integer, %s::integer)
"""
_WATERMARKS = "SELECT tenant, name, value, run_id, moved_at FROM detent.watermark_list_v1(%s::text, %s::text)"
_PRUNE = "SELECT gone, more FROM detent.pipeline_prune_v1(%s::timestamptz, %s::timestamptz, %s::integer)"


def pipeline_start(item: NewPipelineRun) -> Statement[bool | DetentError]:
    """Whether the run is new: then its planning job must follow."""

    def decode(rows: Sequence[Row]) -> bool | DetentError:
        answer, run_id = rows[0]
        match answer:
            case "created" | "there":
                return bool(answer == "created")
            case "id_conflict":
                return IdConflict(item.id)
            case _:
                return RunInProgress(item.watermark, run_id or 0)

    params = (
        *(item.id, item.name, item.payload, item.watermark, item.tenant, item.full, item.forced, item.started_by),
        *(item.reason, item.retires, item.queue, item.priority, item.replicas, item.portion_size, item.plan.id),
    )
    return Statement(_START, params, decode)


def pipeline_fan_out(
    run_id: int, job_id: int, attempt: int, parts: Sequence[NewPartition], tolerated: int
) -> Statement[Moved | DetentError]:
    """The partitions and the move; where it moved, their jobs must follow."""

    def decode(rows: Sequence[Row]) -> Moved | DetentError:
        found, state, moved = rows[0]
        if found is not None:
            return LeaseLost(job_id, attempt, found)
        return NotFound("pipeline_run", str(run_id)) if state is None else Moved(str(run_id), state, moved)

    params = (
        *(run_id, job_id, attempt, tolerated, numbers(part.n for part in parts), texts(part.key for part in parts)),
        *(texts(part.payload for part in parts), numbers(part.job.id for part in parts)),
    )
    return Statement(_FAN_OUT, params, decode)


def page_store(item: NewPage) -> Statement[PageStored | DetentError]:
    """What became of it."""

    def decode(rows: Sequence[Row]) -> PageStored | DetentError:
        found, stored, next_offset, last_page = rows[0]
        if found is not None:
            return LeaseLost(item.job_id, item.attempt, found)
        if next_offset is None:
            return NotFound("partition", f"{item.run_id}/{item.n}")
        return PageStored(stored, next_offset, last_page)

    params = (
        *(item.run_id, item.n, item.job_id, item.attempt, item.offset, item.next_offset),
        *(texts(item.keys), texts(item.datas)),
    )
    return Statement(_PAGE, params, decode)


def portion_take(run_id: int, job_id: int, attempt: int, tries_max: int) -> Statement[Portion | DetentError]:
    """What to do, with the records."""

    def decode(rows: Sequence[Row]) -> Portion | DetentError:
        found, kind, n, tries, keys, datas = rows[0]
        if found is not None:
            return LeaseLost(job_id, attempt, found)
        if kind is None:
            return NotFound("pipeline_run", str(run_id))
        return Portion(kind, n or 0, tries or 0, tuple(zip(keys or (), datas or (), strict=True)))

    return Statement(_TAKE, (run_id, job_id, attempt, tries_max), decode)


def portion_done(run_id: int, n: int, job_id: int, attempt: int) -> Statement[Moved | DetentError]:
    """Done, or in other hands."""

    def decode(rows: Sequence[Row]) -> Moved | DetentError:
        found = rows[0][0]
        return Moved(f"{run_id}/{n}", "done", True) if found is None else LeaseLost(job_id, attempt, found)

    return Statement(_DONE, (run_id, n, job_id, attempt), decode)


def gone_take(run_id: int, job_id: int, attempt: int, limit: int) -> Statement[list[str] | DetentError]:
    """The keys."""

    def decode(rows: Sequence[Row]) -> list[str] | DetentError:
        found, keys = rows[0]
        return list(keys) if found is None else LeaseLost(job_id, attempt, found)

    return Statement(_GONE, (run_id, job_id, attempt, limit), decode, writes=False)


def gone_done(run_id: int, job_id: int, attempt: int, keys: Sequence[str]) -> Statement[Moved | DetentError]:
    """Whether any was among the seen."""

    def decode(rows: Sequence[Row]) -> Moved | DetentError:
        found, gone = rows[0]
        return Moved(str(run_id), "consolidating", gone > 0) if found is None else LeaseLost(job_id, attempt, found)

    return Statement(_GONE_DONE, (run_id, job_id, attempt, texts(keys)), decode)


def pipeline_complete(run_id: int, job_id: int, attempt: int) -> Statement[Moved | DetentError]:
    """Completed, by this call or before."""

    def decode(rows: Sequence[Row]) -> Moved | DetentError:
        found, moved = rows[0]
        return Moved(str(run_id), "completed", moved) if found is None else LeaseLost(job_id, attempt, found)

    return Statement(_COMPLETE, (run_id, job_id, attempt), decode)


def pipeline_force(run_id: int, actor: str, reason: str) -> Statement[Moved | DetentError]:
    """Triggered, or why not."""

    def decode(rows: Sequence[Row]) -> Moved | DetentError:
        was, to = rows[0][0], "consolidation_triggered"
        if was is None:
            return NotFound("pipeline_run", str(run_id))
        skipped = "consolidation_skipped"
        if was != skipped:
            allowed = PIPELINE_RUN.allowed(was)
            return InvalidTransition("pipeline_run", str(run_id), was, to, allowed, "force", (skipped,))
        return Moved(str(run_id), to, True)

    return Statement(_FORCE, (run_id, actor, reason), decode)


def pipeline_retry(run_id: int, actor: str, reason: str | None) -> Statement[Moved | DetentError]:
    """At work again, or why not."""

    def decode(rows: Sequence[Row]) -> Moved | DetentError:
        was, to, instead, other, watermark = rows[0]
        if was is None:
            return NotFound("pipeline_run", str(run_id))
        if was not in RETRIED_FROM:
            return wrong_state(run_id, was)
        if instead is not None:
            return not_retried(run_id, watermark, instead, other)
        return Moved(str(run_id), to, True)

    return Statement(_RETRY, (run_id, actor, reason), decode)


def pipeline_get(run_id: int) -> Statement[PipelineRunRow | None]:
    """None where there is none."""
    return Statement(_GET, (run_id,), lambda rows: next(iter(_runs(rows)), None), writes=False)


def pipeline_list(
    state: str | None, name: str | None, tenant: str | None, before_id: int | None, limit: int
) -> Statement[list[PipelineRunRow]]:
    """The newest first."""
    return Statement(_LIST, (state, name, tenant, before_id, limit), _runs, writes=False)


def partition_list(run_id: int, state: str | None, after_n: int, limit: int) -> Statement[list[PartitionRow]]:
    """By number."""

    def decode(rows: Sequence[Row]) -> list[PartitionRow]:
        return [PartitionRow(**named(_PARTITION_FIELDS, row)) for row in rows]

    return Statement(_PARTITIONS, (run_id, state, after_n, limit), decode, writes=False)


def watermark_list(tenant: str | None, name: str | None) -> Statement[list[WatermarkRow]]:
    """By tenant and name."""

    def decode(rows: Sequence[Row]) -> list[WatermarkRow]:
        return [WatermarkRow(t, n, utc(value), run_id, utc(moved)) for t, n, value, run_id, moved in rows]

    return Statement(_WATERMARKS, (tenant, name), decode, writes=False)


def pipeline_prune(staged_before: datetime, before: datetime, limit: int) -> Statement[PrunedRuns]:
    """How many rows went."""
    params = (moment(staged_before, field="staged_before"), moment(before, field="before"), limit)
    return Statement(_PRUNE, params, lambda rows: PrunedRuns(*rows[0]))


def _runs(rows: Sequence[Row]) -> list[PipelineRunRow]:
    return [PipelineRunRow(**named(_FIELDS, row)) for row in rows]
