"""portion_take: staged records are shared out, each to one job at a time."""

from __future__ import annotations

import pytest

from detent.errors import LeaseLost, NotFound
from detent.model.pipeline_records import ConsolidationStep
from detent.model.records import Outcome
from detent.store.contract import Store
from detent.testing.stores import StoreClock
from tests.contract.jobs.sample_jobs import LEASE, abort, claim, finish
from tests.contract.pipelines.sample_pipeline_runs import (
    block_done,
    claim_of,
    completed,
    consolidating,
    fanned_out,
    run_of,
    store_pages,
)
from tests.contract.refusals import Untouched, refused

FIVE = {key: f'"{key}"' for key in "edcba"}


def test_in_the_order_of_the_keys_and_then_the_end(store: Store) -> None:
    """P4: portions of the size asked for, and whoever finds nothing left ends the run."""
    run, held = consolidating(store, FIVE, portion_size=2)
    assert run.state == "consolidating"
    taken = []
    for _ in range(3):
        portion = store.portion_take(run.id, held.job_id, held.attempt, 3)
        assert isinstance(portion, ConsolidationStep)
        taken.append([key for key, _ in portion.records])
        block_done(store, run.id, held, portion)
    assert taken == [["a", "b"], ["c", "d"], ["e"]]
    assert store.portion_take(run.id, held.job_id, held.attempt, 3) == ConsolidationStep("finish", 0, 1)
    assert run_of(store, run.id).consolidated == 5


def test_as_many_jobs_as_there_are_portions(store: Store) -> None:
    """P4: five replicas at most, and not more than have something to do."""
    run = fanned_out(store, portion_size=2)
    store_pages(store, run.id, FIVE)
    held = claim(store, tasks=["detent.pipeline.consolidate/p"])
    assert len(held) == 3
    assert run_of(store, run.id).state == "consolidating"


def test_each_portion_to_one_job(store: Store) -> None:
    """P4: safe with several at once; who finds only others' portions has nothing to do, and one alone ends the run."""
    run = fanned_out(store, portion_size=3)
    store_pages(store, run.id, FIVE)
    one, two = claim(store, tasks=["detent.pipeline.consolidate/p"])
    first = store.portion_take(run.id, one.job_id, one.attempt, 3)
    second = store.portion_take(run.id, two.job_id, two.attempt, 3)
    assert isinstance(first, ConsolidationStep)
    assert isinstance(second, ConsolidationStep)
    assert (len(first.records), len(second.records)) == (3, 2)
    block_done(store, run.id, two, second)
    assert store.portion_take(run.id, two.job_id, two.attempt, 3) == ConsolidationStep("nothing")
    block_done(store, run.id, one, first)
    assert store.portion_take(run.id, one.job_id, one.attempt, 3) == ConsolidationStep("finish", 0, 1)
    assert store.portion_take(run.id, two.job_id, two.attempt, 3) == ConsolidationStep("nothing")


def test_what_a_dead_job_held_is_taken_again_and_not_for_ever(store: Store, clock: StoreClock) -> None:
    """P4: resumable, and with a limit of attempts for one portion; a job that fails for it fails the run."""
    run, held = consolidating(store, FIVE)
    assert store.portion_take(run.id, held.job_id, held.attempt, 2).kind == "portion"  # type: ignore[union-attr]
    clock.advance(LEASE + 1)
    store.lease_reap(10)
    held = claim_of(store, "consolidate")
    again = store.portion_take(run.id, held.job_id, held.attempt, 2)
    assert isinstance(again, ConsolidationStep)
    assert (again.n, again.tries, len(again.records)) == (1, 2, 5)
    abort(store, held, error="boom")
    held = claim_of(store, "consolidate")
    assert store.portion_take(run.id, held.job_id, held.attempt, 2) == ConsolidationStep("used_up", 1, 2)
    abort(store, held, error="no tries left", fatal=True)
    row = run_of(store, run.id)
    assert (row.state, row.error, row.consolidated) == ("failed", "no tries left", 0)
    assert store.watermark_list() == []


@pytest.mark.parametrize("outcome", ["released", "snoozed"])
def test_a_try_that_was_given_back_does_not_count(store: Store, outcome: Outcome) -> None:
    """P4, J7: the attempt was spared, since the database was away or the function put it off; a portion and the end of
    a run counted it as a failed try."""
    run, held = consolidating(store, FIVE)
    for _ in range(3):
        taken = store.portion_take(run.id, held.job_id, held.attempt, 2)
        assert isinstance(taken, ConsolidationStep)
        assert (taken.kind, taken.tries) == ("portion", 1)
        abort(store, held, outcome)
        held = claim_of(store, "consolidate")
    taken = store.portion_take(run.id, held.job_id, held.attempt, 2)
    assert isinstance(taken, ConsolidationStep)
    block_done(store, run.id, held, taken)
    for _ in range(3):
        assert store.portion_take(run.id, held.job_id, held.attempt, 2) == ConsolidationStep("finish", 0, 1)
        abort(store, held, outcome)
        held = claim_of(store, "consolidate")


def test_the_end_of_a_run_is_not_tried_for_ever(store: Store, clock: StoreClock) -> None:
    """P4: a job that dies again and again when it ends the run fails it; getting on begins the count anew."""
    run, held = consolidating(store, {})
    assert store.portion_take(run.id, held.job_id, held.attempt, 2) == ConsolidationStep("finish", 0, 1)
    clock.advance(LEASE + 1)
    store.lease_reap(10)
    held = claim_of(store, "consolidate")
    assert store.portion_take(run.id, held.job_id, held.attempt, 2) == ConsolidationStep("finish", 0, 2)
    assert store.portion_take(run.id, held.job_id, held.attempt, 2) == ConsolidationStep("used_up", 0, 2)
    store.gone_done(run.id, held.job_id, held.attempt, [])
    assert store.portion_take(run.id, held.job_id, held.attempt, 2) == ConsolidationStep("finish", 0, 1)


def test_of_a_run_that_is_over(store: Store) -> None:
    """Whoever comes late hears so."""
    run = completed(store, {"a": "1"})
    fanned_out(store)
    held = claim_of(store, "page")
    assert store.portion_take(run.id, held.job_id, held.attempt, 3) == ConsolidationStep("over")


def test_only_by_the_holder(store: Store, untouched: Untouched) -> None:
    """J5: whoever holds the job."""
    run, held = consolidating(store, FIVE)
    with untouched():
        refused(store.portion_take(run.id, held.job_id, held.attempt + 1, 3), LeaseLost)
        refused(store.portion_take(run.id + 999, held.job_id, held.attempt, 3), NotFound)
    finish(store, held)
