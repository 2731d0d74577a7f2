"""job_events: the lines of a job, page by page."""

from __future__ import annotations

from detent.store.contract import Store
from tests.contract.jobs.sample_jobs import claim, enqueue, event
from tests.contract.refusals import Untouched


def test_in_order_from_anywhere(store: Store, untouched: Untouched) -> None:
    """E6: whoever follows asks for what came after the last line seen."""
    job_id, other = enqueue(store), enqueue(store)
    first, second = claim(store)
    store.event_append([event(first, f"line {n}") for n in range(1, 6)])
    store.event_append([event(second, "somebody else's")])
    with untouched():
        assert [line.message for line in store.job_events(job_id)] == [f"line {n}" for n in range(1, 6)]
        assert [line.seq for line in store.job_events(job_id, after_seq=2, limit=2)] == [3, 4]
        assert store.job_events(job_id, after_seq=5) == []
        assert [line.message for line in store.job_events(other)] == ["somebody else's"]
        assert store.job_events(10**12) == []
