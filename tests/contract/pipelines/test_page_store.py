"""page_store: the records of a page and the next offset, together and once."""

from __future__ import annotations

import pytest

from detent.errors import DetentError, LeaseLost, NotFound
from detent.model.pipeline_records import ELSEWHERE, ConsolidationStep, PageStored
from detent.model.records import Moved
from detent.store.contract import Store, Verbs
from detent.testing.stores import StoreClock
from tests.contract.jobs.sample_jobs import LEASE, abort, claim, finish
from tests.contract.pipelines.sample_pipeline_runs import claim_of, fanned_out, page, partition, run_of
from tests.contract.refusals import Untouched, refused


def test_pages_follow_one_another(store: Store) -> None:
    """P2: records, offset and counts move together; the last page says so."""
    run = fanned_out(store)
    held = claim_of(store, "page")
    first = page(run.id, held, records={"x": "1", "y": "2"}, next_offset='{"at":2}')
    assert store.page_store(first) == PageStored(True, '{"at":2}', False)
    row = partition(store, run.id)
    assert (row.state, row.pages, row.records, row.staged) == ("fetching_pages", 1, 2, 2)
    last = page(run.id, held, offset='{"at":2}', records={"y": "3", "z": "4"})
    assert store.page_store(last) == PageStored(True, '{"at":2}', True)
    row = partition(store, run.id)
    assert (row.pages, row.records, row.staged, row.last_page) == (2, 4, 3, True)
    finish(store, held)
    assert partition(store, run.id).state == "completed"
    found = run_of(store, run.id)
    assert (found.state, found.records, found.staged) == ("consolidation_triggered", 4, 3)


def test_an_empty_page_counts(store: Store) -> None:
    """P2: it may be the only one."""
    run = fanned_out(store)
    held = claim_of(store, "page")
    assert store.page_store(page(run.id, held)) == PageStored(True, "0", True)
    assert partition(store, run.id).pages == 1


def test_a_page_that_repeats_changes_nothing(store: Store, untouched: Untouched) -> None:
    """P2: the offset has moved on, so the page is skipped; its sender hears where the partition stands."""
    run = fanned_out(store)
    held = claim_of(store, "page")
    once = page(run.id, held, records={"x": "1"}, next_offset="1")
    store.page_store(once)
    with untouched():
        assert store.page_store(once) == PageStored(False, "1", False)
        assert store.page_store(page(run.id, held, offset="7", records={"x": "9"})) == PageStored(False, "1", False)


def test_a_late_page_is_refused(store: Store, clock: StoreClock, untouched: Untouched) -> None:
    """C4, P2: whoever lost the lease stores nothing, and the next attempt goes on where the last page ended."""
    run = fanned_out(store)
    late = claim_of(store, "page")
    store.page_store(page(run.id, late, records={"x": "1"}, next_offset="1"))
    clock.advance(LEASE + 1)
    with untouched():
        refused(store.page_store(page(run.id, late, offset="1", records={"y": "2"})), LeaseLost)
    store.lease_reap(10)
    now = claim_of(store, "page")
    with untouched():
        refused(store.page_store(page(run.id, late, offset="1", records={"y": "2"})), LeaseLost)
    assert partition(store, run.id).next_offset == "1"
    assert store.page_store(page(run.id, now, offset="1", records={"y": "2"})).stored  # type: ignore[union-attr]


def test_together_with_the_holders_own_statements(store: Store, clock: StoreClock, untouched: Untouched) -> None:
    """P2, C2: records in a table of the user's own, their keys and the offset: in one transaction, or not at all."""
    run = fanned_out(store)
    held = claim_of(store, "page")
    item = page(run.id, held, records={"x": ELSEWHERE, "y": ELSEWHERE})

    def last(verbs: Verbs) -> DetentError | Moved:
        found = verbs.page_store(item)
        if isinstance(found, PageStored):
            return Moved("page", "stored", True) if found.stored else LeaseLost(held.job_id, held.attempt, "late")
        return found

    def with_rows(*, breaks: bool) -> None:
        with store.holders_block(held.job_id, held.attempt, last) as tx:
            tx.execute("CREATE TABLE mine (x INTEGER)")
            if breaks:
                raise ZeroDivisionError

    with untouched(), pytest.raises(ZeroDivisionError):
        with_rows(breaks=True)
    with_rows(breaks=False)
    row = partition(store, run.id)
    assert (row.pages, row.staged, row.last_page) == (1, 2, True)
    with (
        untouched(),
        pytest.raises(LeaseLost, match="late"),
        store.holders_block(held.job_id, held.attempt, last) as tx,
    ):
        tx.execute("DROP TABLE mine")
    finish(store, held)
    taker = claim_of(store, "consolidate")
    portion = store.portion_take(run.id, taker.job_id, taker.attempt, 3)
    assert isinstance(portion, ConsolidationStep)
    assert portion.records == (("x", ELSEWHERE), ("y", ELSEWHERE))
    with store.holders_block(taker.job_id, taker.attempt, lambda verbs: Moved("", "", False)) as tx:
        assert tx.execute("SELECT count(*) FROM mine")[0] == [(0,)]
    clock.advance(LEASE + 1)
    with pytest.raises(LeaseLost), store.holders_block(taker.job_id, taker.attempt, last):
        pass


def test_not_of_another_partition(store: Store, untouched: Untouched) -> None:
    """A job stores its own pages only."""
    run = fanned_out(store, ["a", "b"])
    one, _ = claim(store, tasks=["detent.pipeline.page/p"])
    with untouched():
        refused(store.page_store(page(run.id, one, n=2)), NotFound)
        refused(store.page_store(page(run.id, one, n=3)), NotFound)


def test_pages_renew_the_tries(store: Store) -> None:
    """P2: attempts are counted since the last page; those that were given back do not count."""
    run = fanned_out(store)
    for expected in (1, 2):
        held = claim_of(store, "page")
        assert partition(store, run.id).tries == expected
        abort(store, held, error="timeout")
    abort(store, claim_of(store, "page"), "snoozed")
    held = claim_of(store, "page")
    assert partition(store, run.id).tries == 3
    store.page_store(page(run.id, held, next_offset="1"))
    assert partition(store, run.id).tries == 0


@pytest.mark.parametrize("after_page", [True, False])
def test_a_partition_that_fails_skips_the_consolidation(store: Store, after_page: bool) -> None:
    """P3: on its first page or on a later one: what is staged stays, and nobody consolidates it."""
    run = fanned_out(store, ["a", "b"])
    one, two = claim(store, tasks=["detent.pipeline.page/p"])
    if after_page:
        store.page_store(page(run.id, one, records={"x": "1"}, next_offset="1"))
    abort(store, one, error="no such page", fatal=True)
    assert run_of(store, run.id).state == "workers_running"
    store.page_store(page(run.id, two, n=2, records={"y": "1"}))
    finish(store, two)
    row = run_of(store, run.id)
    assert (row.state, row.parts_ended, row.parts_failed) == ("consolidation_skipped", 2, 1)
    assert partition(store, run.id).error == "no such page"
    assert claim(store, tasks=["detent.pipeline.consolidate/p"]) == []
    finish(store, claim_of(store, "skipped"))
    row = run_of(store, run.id)
    assert row.state == "failed"
    assert row.error == "1 of 2 partitions failed: nothing was consolidated"
    why = [(line.to_state, line.reason) for line in store.transitions("pipeline_run", str(run.id))][-2:]
    assert why == [("consolidation_skipped", "1 of 2 partitions failed"), ("failed", "it was not forced")]
    assert store.watermark_list() == []
