"""batch_figures: requests to apply, runs that ended and their targets."""

from __future__ import annotations

from datetime import timedelta

from detent.model.figure_records import BatchCount
from detent.store.contract import Store
from detent.testing.stores import StoreClock
from tests.contract.batches.sample_batch_runs import act, applied_run, drive, previewed_run, work

HOUR = timedelta(hours=1)


def test_applies_and_runs_that_ended(store: Store, clock: StoreClock) -> None:
    """M1: how often a batch was applied, how long the runs took, and what became of their targets."""
    assert store.batch_figures(store.now() - HOUR) == []
    made = previewed_run(store, ("a", "b", "c"))
    act(store, made.id)
    assert store.batch_figures(store.now() - HOUR) == [BatchCount("reprice", -1, 1, 0, 0, 0, 0, 0)], "asked for"
    drive(store)
    work(store, fails="b")
    applied_run(store, ("d", "e"))
    assert store.batch_figures(store.now() - HOUR) == [
        BatchCount("reprice", -1, 2, 0, 0, 0, 0, 0),
        BatchCount("reprice", 0, 0, 2, 4, 1, 0, 0),
    ]
    clock.advance(5)
    act(store, made.id, "retry_failed")
    drive(store)
    work(store)
    assert store.batch_figures(store.now() - HOUR) == [
        BatchCount("reprice", -1, 2, 0, 0, 0, 0, 0),
        BatchCount("reprice", 0, 0, 1, 2, 0, 0, 0),
        BatchCount("reprice", 4_700_000, 0, 1, 3, 0, 5_000_000, 5_000_000),
    ], "from the first target of a run to its end"
    clock.advance(7200)
    assert store.batch_figures(store.now() - HOUR) == []
