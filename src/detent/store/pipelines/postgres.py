"""Pipeline runs on PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TypeVar

from detent.errors import DetentError, IdConflict, InvalidTransition, LeaseLost, NotFound, RunInProgress
from detent.lifecycle.library import PIPELINE_RUN
from detent.model.pipeline_records import (
    ConsolidationKind,
    ConsolidationStep,
    NewPage,
    NewPartition,
    NewPipelineRun,
    PageStored,
    PartitionRow,
    PipelineRunRow,
    PrunedRuns,
    WatermarkRow,
)
from detent.model.records import Moved, NewJob
from detent.store.jobs.postgres_enqueue import job_enqueue
from detent.store.pipelines.rules import RETRIED_FROM, cancelled, not_retried, wrong_state
from detent.store.postgres.driver.session import Session
from detent.store.postgres.statement import Row, Statement, moment, named, numbers, texts, utc
from detent.store.postgres.verb_base import VerbBase, requeues, runs

__all__ = ["PostgresPipelines"]

T = TypeVar("T")

_JOBS_AT_ONCE = 500
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


def _unless_lost(job_id: int, attempt: int, answer: Callable[..., T]) -> Callable[[Sequence[Row]], T | LeaseLost]:
    """Decode a row whose first column says why the caller is not the holder, and is null if it is."""

    def decode(rows: Sequence[Row]) -> T | LeaseLost:
        instead, *rest = rows[0]
        return answer(*rest) if instead is None else LeaseLost(job_id, attempt, instead)

    return decode


def _start(item: NewPipelineRun) -> Statement[bool | DetentError]:
    """Return whether the run is new."""

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


def _fan_out(
    run_id: int, job_id: int, attempt: int, parts: Sequence[NewPartition], tolerated: int
) -> Statement[Moved | DetentError]:
    def answer(state: str | None, moved: bool) -> Moved | DetentError:
        return NotFound("pipeline_run", str(run_id)) if state is None else Moved(str(run_id), state, moved)

    params = (
        *(run_id, job_id, attempt, tolerated, numbers(part.n for part in parts), texts(part.key for part in parts)),
        *(texts(part.payload for part in parts), numbers(part.job.id for part in parts)),
    )
    return Statement(_FAN_OUT, params, _unless_lost(job_id, attempt, answer))


def page_store(item: NewPage) -> Statement[PageStored | DetentError]:
    def answer(stored: bool, next_offset: str | None, last_page: bool) -> PageStored | DetentError:
        if next_offset is None:
            return NotFound("partition", f"{item.run_id}/{item.n}")
        return PageStored(stored, next_offset, last_page)

    params = (
        *(item.run_id, item.n, item.job_id, item.attempt, item.offset, item.next_offset),
        *(texts(item.keys), texts(item.datas)),
    )
    return Statement(_PAGE, params, _unless_lost(item.job_id, item.attempt, answer))


def portion_take(run_id: int, job_id: int, attempt: int, tries_max: int) -> Statement[ConsolidationStep | DetentError]:
    def answer(
        kind: ConsolidationKind | None,
        n: int | None,
        tries: int | None,
        keys: list[str] | None,
        datas: list[str] | None,
    ) -> ConsolidationStep | DetentError:
        if kind is None:
            return NotFound("pipeline_run", str(run_id))
        return ConsolidationStep(kind, n or 0, tries or 0, tuple(zip(keys or (), datas or (), strict=True)))

    return Statement(_TAKE, (run_id, job_id, attempt, tries_max), _unless_lost(job_id, attempt, answer))


def portion_done(run_id: int, n: int, job_id: int, attempt: int) -> Statement[Moved | DetentError]:
    decode = _unless_lost(job_id, attempt, lambda: Moved(f"{run_id}/{n}", "done", True))
    return Statement(_DONE, (run_id, n, job_id, attempt), decode)


def gone_take(run_id: int, job_id: int, attempt: int, limit: int) -> Statement[list[str] | DetentError]:
    return Statement(_GONE, (run_id, job_id, attempt, limit), _unless_lost(job_id, attempt, _listed), writes=False)


def _listed(keys: Sequence[str]) -> list[str]:
    return list(keys)


def gone_done(run_id: int, job_id: int, attempt: int, keys: Sequence[str]) -> Statement[Moved | DetentError]:
    decode = _unless_lost(job_id, attempt, lambda gone: Moved(str(run_id), "consolidating", gone > 0))
    return Statement(_GONE_DONE, (run_id, job_id, attempt, texts(keys)), decode)


def pipeline_complete(run_id: int, job_id: int, attempt: int) -> Statement[Moved | DetentError]:
    decode = _unless_lost(job_id, attempt, lambda moved: Moved(str(run_id), "completed", moved))
    return Statement(_COMPLETE, (run_id, job_id, attempt), decode)


def pipeline_force(run_id: int, actor: str, reason: str) -> Statement[Moved | DetentError]:
    def decode(rows: Sequence[Row]) -> Moved | DetentError:
        was, to, skipped = rows[0][0], "consolidation_triggered", "consolidation_skipped"
        if was is None:
            return NotFound("pipeline_run", str(run_id))
        if was != skipped:
            allowed = PIPELINE_RUN.allowed(was)
            return InvalidTransition("pipeline_run", str(run_id), was, to, allowed, "force", (skipped,))
        return Moved(str(run_id), to, True)

    return Statement(_FORCE, (run_id, actor, reason), decode)


def pipeline_cancel(run_id: int, actor: str, reason: str | None = None) -> Statement[Moved | DetentError]:
    sql = "SELECT detent.pipeline_cancel_v1(%s::bigint, %s::text, %s::text)"
    return Statement(sql, (run_id, actor, reason), lambda rows: cancelled(run_id, rows[0][0]))


def pipeline_retry(run_id: int, actor: str, reason: str | None = None) -> Statement[Moved | DetentError]:
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
    return Statement(_GET, (run_id,), lambda rows: next(iter(_runs(rows)), None), writes=False)


def pipeline_list(
    *,
    state: str | None = None,
    name: str | None = None,
    tenant: str | None = None,
    before_id: int | None = None,
    limit: int = 100,
) -> Statement[list[PipelineRunRow]]:
    return Statement(_LIST, (state, name, tenant, before_id, limit), _runs, writes=False)


def partition_list(
    run_id: int, *, state: str | None = None, after_n: int = 0, limit: int = 1000
) -> Statement[list[PartitionRow]]:
    def decode(rows: Sequence[Row]) -> list[PartitionRow]:
        return [PartitionRow(**named(_PARTITION_FIELDS, row)) for row in rows]

    return Statement(_PARTITIONS, (run_id, state, after_n, limit), decode, writes=False)


def watermark_list(*, tenant: str | None = None, name: str | None = None) -> Statement[list[WatermarkRow]]:
    def decode(rows: Sequence[Row]) -> list[WatermarkRow]:
        return [WatermarkRow(t, n, utc(value), run_id, utc(moved)) for t, n, value, run_id, moved in rows]

    return Statement(_WATERMARKS, (tenant, name), decode, writes=False)


def pipeline_prune(staged_before: datetime, before: datetime, limit: int) -> Statement[PrunedRuns]:
    params = (moment(staged_before, field="staged_before"), moment(before, field="before"), limit)
    return Statement(_PRUNE, params, lambda rows: PrunedRuns(*rows[0]))


def _runs(rows: Sequence[Row]) -> list[PipelineRunRow]:
    return [PipelineRunRow(**named(_FIELDS, row)) for row in rows]


class PostgresPipelines(VerbBase):
    """The verbs of pipeline runs."""

    page_store = runs(page_store)
    portion_take = runs(portion_take)
    portion_done = runs(portion_done)
    gone_take = runs(gone_take)
    gone_done = runs(gone_done)
    pipeline_complete = runs(pipeline_complete)
    pipeline_force = runs(pipeline_force)
    pipeline_cancel = runs(pipeline_cancel)
    pipeline_retry = requeues(runs(pipeline_retry))
    pipeline_get = runs(pipeline_get)
    pipeline_list = runs(pipeline_list)
    partition_list = runs(partition_list)
    watermark_list = runs(watermark_list)
    pipeline_prune = runs(pipeline_prune)

    def pipeline_start(self, item: NewPipelineRun) -> PipelineRunRow | DetentError:
        """Insert the run and enqueue its planning job in one transaction."""

        def start(session: Session) -> PipelineRunRow | DetentError:
            is_new = session.run(_start(item))
            if isinstance(is_new, DetentError):
                return is_new
            if is_new:
                _enqueue(session, [item.plan])
            row = session.run(pipeline_get(item.id))
            assert row is not None
            return row

        return self._session.together(start)

    def pipeline_fan_out(
        self, run_id: int, job_id: int, attempt: int, parts: Sequence[NewPartition], tolerated: int = 0
    ) -> Moved | DetentError:
        """Insert all partitions, move the run and enqueue all jobs in one transaction."""

        def fan_out(session: Session) -> Moved | DetentError:
            moved = session.run(_fan_out(run_id, job_id, attempt, parts, tolerated))
            if isinstance(moved, Moved) and moved.changed:
                _enqueue(session, [part.job for part in parts])
            return moved

        return self._session.together(fan_out)


def _enqueue(session: Session, jobs: Sequence[NewJob]) -> None:
    """Enqueue all jobs; if one is refused, raise the refusal, so that the transaction is rolled back."""
    for start in range(0, len(jobs), _JOBS_AT_ONCE):
        for answer in session.run(job_enqueue(jobs[start : start + _JOBS_AT_ONCE], notify=False)):
            if isinstance(answer, DetentError):
                raise answer
