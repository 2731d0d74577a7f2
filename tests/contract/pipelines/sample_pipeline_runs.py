"""Pipeline runs for tests, in each of their states, and short calls that take a run through its life."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from detent.model.pipeline_records import (
    ConsolidationStep,
    NewPage,
    NewPartition,
    NewPipelineRun,
    PageStored,
    PartitionRow,
    PipelineRunRow,
)
from detent.model.records import Claimed, Moved
from detent.store.contract import Store
from tests.contract.jobs.sample_jobs import abort, claim, finish, new_job

__all__ = [
    "block_done",
    "claim_of",
    "consolidating",
    "failed_run",
    "fanned_out",
    "page",
    "partition",
    "run_of",
    "start",
    "started",
    "store_pages",
]

NAME = "p"


def start(store: Store, **overrides: Any) -> Any:
    """Ask for a run; the answer."""
    return store.pipeline_start(described(store, **overrides))


def described(store: Store, **overrides: Any) -> NewPipelineRun:
    """A run as a client would describe it."""
    run_id = overrides.pop("id", None) or store.ids_reserve(1)
    plan = new_job(store, task="detent.pipeline.plan/p", payload="{}", run_id=run_id, dead_letter=False)
    fields: dict[str, Any] = {"name": NAME, "payload": "{}", "watermark": "w", "plan": plan} | overrides
    return NewPipelineRun(id=run_id, **fields)


def started(store: Store, **overrides: Any) -> PipelineRunRow:
    """A run that has begun."""
    row = start(store, **overrides)
    assert isinstance(row, PipelineRunRow), row
    return row


def run_of(store: Store, run_id: int) -> PipelineRunRow:
    """The run, which must be there."""
    row = store.pipeline_get(run_id)
    assert row is not None
    return row


def claim_of(store: Store, part: str, **overrides: Any) -> Claimed:
    """Claim one job of a run: plan, page, consolidate, skipped or failed."""
    (held,) = claim(store, tasks=[f"detent.pipeline.{part}/{NAME}"], limit=1, **overrides)
    return held


def parts_of(store: Store, run_id: int, keys: Sequence[str], **overrides: Any) -> list[NewPartition]:
    """A plan with a partition for each key."""
    fields: dict[str, Any] = {"task": "detent.pipeline.page/p", "payload": "{}", "dead_letter": False} | overrides
    return [NewPartition(n, key, "{}", new_job(store, run_id=run_id, **fields)) for n, key in enumerate(keys, start=1)]


def fanned_out(store: Store, keys: Sequence[str] = ("a",), **overrides: Any) -> PipelineRunRow:
    """A run whose plan is made, with a partition for each key."""
    tolerated = overrides.pop("tolerated", 0)
    run = started(store, **overrides)
    held = claim_of(store, "plan")
    parts = parts_of(store, run.id, keys)
    answer = store.pipeline_fan_out(run.id, held.job_id, held.attempt, parts, tolerated)
    assert answer == Moved(str(run.id), "workers_running", True)
    finish(store, held)
    return run_of(store, run.id)


def partition(store: Store, run_id: int, n: int = 1) -> PartitionRow:
    """The partition, which must be there."""
    (row,) = store.partition_list(run_id, after_n=n - 1, limit=1)
    assert row.n == n
    return row


def page(run_id: int, held: Claimed, n: int = 1, **overrides: Any) -> NewPage:
    """A page of that partition, at its beginning and the last one unless said otherwise."""
    records: Mapping[str, str] = overrides.pop("records", {})
    fields: dict[str, Any] = {"offset": "0", "next_offset": None} | overrides
    return NewPage(
        run_id=run_id,
        n=n,
        job_id=held.job_id,
        attempt=held.attempt,
        keys=tuple(records),
        datas=tuple(records.values()),
        **fields,
    )


def store_pages(store: Store, run_id: int, *pages: Mapping[str, str]) -> None:
    """One partition after the other gets these records as its only page, and ends."""
    for records in pages:
        held = claim_of(store, "page")
        n = next(row.n for row in store.partition_list(run_id) if row.job_id == held.job_id)
        assert store.page_store(page(run_id, held, n, records=records)) == PageStored(True, "0", True)
        finish(store, held)


def consolidating(store: Store, records: Mapping[str, str], **overrides: Any) -> tuple[PipelineRunRow, Claimed]:
    """A run with these records staged, and the job that consolidates them."""
    run = fanned_out(store, **overrides)
    store_pages(store, run.id, records)
    held = claim_of(store, "consolidate")
    return run_of(store, run.id), held


def block_done(store: Store, run_id: int, held: Claimed, portion: ConsolidationStep) -> None:
    """The portion is consolidated."""
    assert isinstance(store.portion_done(run_id, portion.n, held.job_id, held.attempt), Moved)


def completed(store: Store, records: Mapping[str, str], **overrides: Any) -> PipelineRunRow:
    """A run that has completed with these records."""
    run, held = consolidating(store, records, **overrides)
    while True:
        portion = store.portion_take(run.id, held.job_id, held.attempt, 3)
        assert isinstance(portion, ConsolidationStep)
        if portion.kind == "finish":
            break
        block_done(store, run.id, held, portion)
    assert store.pipeline_complete(run.id, held.job_id, held.attempt) == Moved(str(run.id), "completed", True)
    finish(store, held)
    return run_of(store, run.id)


def failed_run(store: Store) -> tuple[int, int]:
    """A failed run: partition 1 failed after its first page, partition 2 completed. The run, and the job of 1."""
    run = fanned_out(store, ["a", "b"])
    one, two = claim(store, tasks=["detent.pipeline.page/p"])
    assert store.page_store(page(run.id, one, records={"x": "1"}, next_offset="5")) == PageStored(True, "5", False)
    abort(store, one, error="boom", fatal=True)
    store.page_store(page(run.id, two, n=2, records={"y": "1"}))
    finish(store, two)
    finish(store, claim_of(store, "skipped"))
    assert run_of(store, run.id).state == "failed"
    return run.id, one.job_id
