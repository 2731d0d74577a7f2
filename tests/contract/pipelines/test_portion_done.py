"""portion_done: a portion is consolidated, by whoever took it last."""

from __future__ import annotations

import pytest

from detent.errors import DetentError, LeaseLost
from detent.model.pipeline_records import ConsolidationStep
from detent.model.records import Moved
from detent.store.contract import Store, Verbs
from detent.testing.stores import StoreClock
from tests.contract.jobs.sample_jobs import LEASE
from tests.contract.pipelines.sample_pipeline_runs import claim_of, consolidating, run_of
from tests.contract.refusals import Untouched, refused


def test_once(store: Store, untouched: Untouched) -> None:
    """P4: the second time it is not in these hands any more."""
    run, held = consolidating(store, {"a": "1"})
    portion = store.portion_take(run.id, held.job_id, held.attempt, 3)
    assert isinstance(portion, ConsolidationStep)
    assert store.portion_done(run.id, portion.n, held.job_id, held.attempt) == Moved(f"{run.id}/1", "done", True)
    assert run_of(store, run.id).consolidated == 1
    with untouched():
        refused(store.portion_done(run.id, portion.n, held.job_id, held.attempt), LeaseLost)


def test_not_by_a_zombie(store: Store, clock: StoreClock, untouched: Untouched) -> None:
    """C4: the portion went to another attempt."""
    run, late = consolidating(store, {"a": "1"})
    store.portion_take(run.id, late.job_id, late.attempt, 3)
    clock.advance(LEASE + 1)
    store.lease_reap(10)
    held = claim_of(store, "consolidate")
    store.portion_take(run.id, held.job_id, held.attempt, 3)
    with untouched():
        refused(store.portion_done(run.id, 1, late.job_id, late.attempt), LeaseLost)
        refused(store.portion_done(run.id, 2, held.job_id, held.attempt), LeaseLost)


def test_together_with_the_holders_own_statements(store: Store, clock: StoreClock, untouched: Untouched) -> None:
    """P4, C2: in one transaction with the user's statements, or not at all."""
    run, held = consolidating(store, {"a": "1"})
    store.portion_take(run.id, held.job_id, held.attempt, 3)

    def done(verbs: Verbs) -> DetentError | Moved:
        return verbs.portion_done(run.id, 1, held.job_id, held.attempt)

    def broken_off() -> None:
        with store.holders_block(held.job_id, held.attempt, done) as tx:
            tx.execute("CREATE TABLE mine (x INTEGER)")
            raise ZeroDivisionError

    with untouched(), pytest.raises(ZeroDivisionError):
        broken_off()
    with store.holders_block(held.job_id, held.attempt, done) as tx:
        tx.execute("CREATE TABLE mine (x INTEGER)")
        tx.execute("INSERT INTO mine VALUES (:x)", {"x": 7})
    assert run_of(store, run.id).consolidated == 1
    clock.advance(LEASE + 1)
    with pytest.raises(LeaseLost), store.holders_block(held.job_id, held.attempt, done):
        pass
