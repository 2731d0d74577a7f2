"""pipeline_fan_out: the plan becomes partitions and their jobs, all or nothing."""

from __future__ import annotations

from detent.errors import LeaseLost, NotFound
from detent.model.records import Moved
from detent.store.contract import Store
from detent.testing.stores import StoreClock
from tests.contract.jobs.sample_jobs import LEASE, abort, claim, finish
from tests.contract.pipelines.sample_pipeline_runs import claim_of, fanned_out, partition, parts_of, run_of, started
from tests.contract.refusals import Untouched, refused


def test_partitions_and_their_jobs(store: Store) -> None:
    """P2: each partition has a job of its own, which carries the run."""
    run = fanned_out(store, ["a", "b"])
    assert (run.state, run.partitions, run.parts_ended) == ("workers_running", 2, 0)
    assert [(row.n, row.key, row.state, row.next_offset) for row in store.partition_list(run.id)] == [
        (1, "a", "pending", "0"),
        (2, "b", "pending", "0"),
    ]
    held = claim(store, tasks=["detent.pipeline.page/p"])
    assert [one.run_id for one in held] == [run.id, run.id]
    assert partition(store, run.id, 2).state == "in_progress"


def test_again_changes_nothing(store: Store) -> None:
    """A plan whose answer was lost is made twice and counts once."""
    run = started(store)
    held = claim_of(store, "plan")
    store.pipeline_fan_out(run.id, held.job_id, held.attempt, parts_of(store, run.id, ["a"]))
    again = store.pipeline_fan_out(run.id, held.job_id, held.attempt, parts_of(store, run.id, ["b", "c"]))
    assert again == Moved(str(run.id), "workers_running", False)
    assert run_of(store, run.id).partitions == 1


def test_an_empty_plan_goes_straight_to_the_end(store: Store) -> None:
    """P3: nothing to fetch is nothing failed."""
    run = fanned_out(store, [])
    assert (run.state, run.partitions) == ("consolidation_triggered", 0)
    assert claim_of(store, "consolidate").run_id == run.id


def test_ten_thousand_partitions(store: Store) -> None:
    """P2: a large plan is still one transaction."""
    keys = [f"k{n}" for n in range(10_000)]
    run = fanned_out(store, keys)
    assert run.partitions == 10_000
    assert len(claim(store, tasks=["detent.pipeline.page/p"], limit=500)) == 500


def test_only_by_the_holder(store: Store, clock: StoreClock, untouched: Untouched) -> None:
    """J5: nobody else makes the plan, and not for a run that is not there."""
    run = started(store)
    held = claim_of(store, "plan")
    parts = parts_of(store, run.id, ["a"])
    with untouched():
        refused(store.pipeline_fan_out(run.id, held.job_id, held.attempt + 1, parts), LeaseLost)
        refused(store.pipeline_fan_out(run.id + 999, held.job_id, held.attempt, parts), NotFound)
    clock.advance(LEASE + 1)
    with untouched():
        refused(store.pipeline_fan_out(run.id, held.job_id, held.attempt, parts), LeaseLost)


def test_a_plan_that_cannot_be_made_fails_the_run(store: Store) -> None:
    """P1: created to failed, with the error, and somebody is told."""
    run = started(store)
    abort(store, claim_of(store, "plan"), error="no such API", fatal=True)
    row = run_of(store, run.id)
    assert (row.state, row.error) == ("failed", "no such API")
    finish(store, claim_of(store, "failed"))
    assert started(store).since is None
