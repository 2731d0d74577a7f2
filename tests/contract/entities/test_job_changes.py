"""job_changes: transitions of a job and of its executions after a place, in order."""

from __future__ import annotations

from detent.model.follow_records import ChangePlace
from detent.model.records import TransitionRow
from detent.store.contract import Store
from tests.contract.jobs.sample_jobs import abort, claim_one, enqueue, event, finish
from tests.contract.refusals import Untouched


def passed(place: ChangePlace, row: TransitionRow) -> ChangePlace:
    if row.n:
        return ChangePlace(place.attempt, place.rank, row.n)
    return ChangePlace(row.attempt, row.rank, place.n)


def test_a_reader_sees_every_step_once_as_it_happens(store: Store, untouched: Untouched) -> None:
    """Whatever step it looks after."""
    seen: list[tuple[str, str]] = []
    place = ChangePlace()

    def read() -> list[str]:
        nonlocal place
        new = []
        while rows := store.job_changes(job_id, place, 1):
            (row,) = rows
            place = passed(place, row)
            new.append(row.trigger)
            seen.append((row.entity, row.trigger))
        return new

    job_id = enqueue(store)
    assert read() == ["enqueue"]
    held = claim_one(store)
    assert read() == ["claim", "lease"]
    store.event_append([event(held)])
    assert read() == ["start"]
    abort(store, held, delay=0.0)
    assert read() == ["abort", "fail", "back_off"]
    store.job_cancel([job_id], "ana", "no more")
    assert read() == ["cancel"]
    store.job_retry([job_id], "ben")
    assert read() == ["retry"]
    finish(store, claim_one(store))
    assert "finish" in read()
    with untouched():
        whole = [(row.entity, row.trigger) for row in store.job_changes(job_id, ChangePlace())]
        assert sorted(whole) == sorted(seen)
        assert store.job_changes(job_id, place) == store.job_changes(10**12, ChangePlace()) == []
    jobs = [row for row in store.job_changes(job_id, ChangePlace()) if row.entity == "job"]
    assert jobs == store.transitions("job", str(job_id))
