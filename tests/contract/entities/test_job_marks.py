"""job_marks: whether anything is new about jobs."""

from __future__ import annotations

from detent.model.follow_records import ChangePlace
from detent.store.contract import Store
from tests.contract.jobs.sample_jobs import abort, claim_one, enqueue, event, finish
from tests.contract.refusals import Untouched


def test_every_event_and_change_moves_the_mark(store: Store, untouched: Untouched) -> None:
    """And a reader that starts at the mark has nothing to read."""
    job_id = enqueue(store, tenant="acme")
    marks = []

    def look() -> None:
        (mark,) = store.job_marks([job_id])
        assert mark is not None
        assert store.job_changes(job_id, ChangePlace(mark.attempt, mark.rank, mark.n)) == []
        assert store.job_events(job_id, mark.seq) == []
        marks.append(mark)

    look()
    held = claim_one(store)
    look()
    store.event_append([event(held)])
    look()
    store.event_append([event(held, "more")])
    look()
    abort(store, held, delay=0.0)
    look()
    store.job_cancel([job_id], "ana")
    look()
    store.job_retry([job_id], "ana")
    look()
    finish(store, claim_one(store))
    look()
    assert len(set(marks)) == len(marks) == 8
    assert {mark.tenant for mark in marks} == {"acme"}
    assert (marks[-1].state, marks[-1].attempt, marks[-1].seq) == ("succeeded", 2, 2)
    with untouched():
        assert store.job_marks([10**12, job_id]) == [None, marks[-1]]
        assert store.job_marks([]) == []
