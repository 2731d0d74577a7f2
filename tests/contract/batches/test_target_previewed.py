"""target_previewed: what the targets are, and what they would be."""

from __future__ import annotations

from detent.errors import LeaseLost, NotFound
from detent.model.batch_records import BatchRunRow, Previewed
from detent.store.contract import Store
from detent.testing.stores import StoreClock
from tests.contract.batches.sample_batch_runs import PREVIEW, held, planned, previewed_run, run, targets
from tests.contract.jobs.sample_jobs import LEASE
from tests.contract.refusals import Untouched, refused


def test_before_and_after_are_kept_letter_for_letter(store: Store, clock: StoreClock) -> None:
    """B2: the preview is complete once every target has its answer."""
    made = planned(store, ["a", "b", "c"])
    holder = held(store, PREVIEW)
    odd = '{"price": 1.50, "name": "Zo\\u00eb \\\\ \\"x\\""}'
    row = store.target_previewed(holder, made.id, [Previewed(n=1, before=odd, after="null", changed=True)])
    assert isinstance(row, BatchRunRow)
    assert (row.previewed, row.previewed_at) == (1, None)
    items = [Previewed(n=2, before="1", after="1", changed=False), Previewed(n=3, error="no such thing")]
    row = store.target_previewed(holder, made.id, items)
    assert isinstance(row, BatchRunRow)
    assert (row.previewed, row.unchanged, row.preview_failed) == (2, 1, 1)
    assert row.previewed_at == clock.now()
    found = targets(store, made.id)
    assert (found["a"].before, found["a"].after, found["a"].changed) == (odd, "null", True)
    assert (found["b"].changed, found["c"].changed, found["c"].preview_error) == (False, None, "no such thing")


def test_what_is_on_record_stays(store: Store, untouched: Untouched) -> None:
    """B2: a preview made again by another attempt changes nothing, and is counted once."""
    made = planned(store, ["a", "b"])
    holder = held(store, PREVIEW)
    store.target_previewed(holder, made.id, [Previewed(n=1, before="1", after="2")])
    with untouched():
        store.target_previewed(holder, made.id, [Previewed(n=1, before="5", after="6"), Previewed(n=99)])
    assert run(store, made.id).previewed == 1


def test_only_by_the_holder_of_a_job_of_the_run(store: Store, clock: StoreClock, untouched: Untouched) -> None:
    made = planned(store, ["a"])
    holder = held(store, PREVIEW)
    with untouched():
        refused(store.target_previewed((holder[0], 9), made.id, [Previewed(n=1)]), LeaseLost)
        refused(store.target_previewed(holder, made.id + 999, [Previewed(n=1)]), NotFound)
    clock.advance(LEASE + 1)
    with untouched():
        refused(store.target_previewed(holder, made.id, [Previewed(n=1)]), LeaseLost)


def test_a_complete_preview(store: Store) -> None:
    assert previewed_run(store).previewed_at is not None
