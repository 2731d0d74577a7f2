"""undo_start: a job of its own undoes the steps of one that has come to rest; there is one for each generation."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from detent.errors import BeingUndone, NotFound, UndoRefused
from detent.model.records import Claimed
from detent.model.workflow_records import NewUndo, UndoStarted
from detent.store.contract import Store
from detent.testing.stores import StoreClock
from tests.contract.jobs.sample_jobs import abort, claim, claim_one, enqueue, finish, state
from tests.contract.refusals import Untouched, refused
from tests.contract.workflows.sample_workflows import begin, load, park, paths, record, signal


def undo(store: Store, job_id: int, **overrides: Any) -> Any:
    """Start the undo of a job; the answer."""
    fields: dict[str, Any] = {"nonce": 7, "cause": "ana: a wrong order"} | overrides
    if "id" not in fields:
        fields["id"] = store.ids_reserve(1)
    return store.undo_start(NewUndo(job_id=job_id, **fields))


def started(answer: object) -> int:
    """The id of the job that undoes."""
    assert isinstance(answer, UndoStarted), answer
    return answer.undo_id


def two_steps(store: Store, **overrides: Any) -> Claimed:
    """A workflow with two steps that can be undone, and others that cannot."""
    held = begin(store, **overrides)
    record(store, held, "reserve", seq=1, undo=True)
    record(store, held, "think", seq=2)
    record(store, held, "charge", seq=3, undo=True, value='"p-1"')
    record(store, held, "notify", seq=4, undo=True, value=None, error='{"name": "OSError", "message": "no"}')
    return held


def ended(store: Store, how: str = "succeeded", **overrides: Any) -> int:
    """A workflow that has come to rest."""
    held = two_steps(store, **overrides)
    if how == "succeeded":
        finish(store, held)
    else:
        abort(store, held, fatal=True, error="ValueError: no")
        if how == "cancelled":
            store.job_discard([held.job_id], "ana")
    assert state(store, held.job_id) == how
    return held.job_id


@pytest.mark.parametrize("how", ["succeeded", "quarantined", "cancelled"])
def test_a_job_of_its_own_gets_the_steps_of_the_other(store: Store, how: str) -> None:
    """F20."""
    job_id = ended(store, how, queue="orders", priority=3, payload='{"n": 1}', tenant="acme", attempts_max=2)
    answer = undo(store, job_id, metadata='{"undo_of": "1"}')
    undo_id = started(answer)
    assert answer == UndoStarted(job_id, undo_id, True)
    (old, new) = store.job_get([job_id, undo_id])
    assert old is not None
    assert new is not None
    assert (new.state, new.task, new.queue, new.priority, new.tenant) == ("pending", old.task, "orders", 3, "acme")
    assert (new.payload, new.attempts_max, new.metadata) == ('{"n": 1}', 2, '{"undo_of": "1"}')
    assert new.correlation_id == old.correlation_id or str(job_id)
    held = claim_one(store, queues=["orders"])
    assert held.job_id == undo_id
    history = load(store, held)
    assert paths(history) == ["charge", "notify", "reserve", "think"]
    assert (history.undoing, history.undo_of, history.undone) == (True, job_id, False)
    assert history.cause == "ana: a wrong order"
    assert state(store, job_id) == how


def test_both_jobs_tell_of_each_other(store: Store) -> None:
    job_id = ended(store)
    undo_id = started(undo(store, job_id))
    (old, new) = store.workflow_get([job_id, undo_id])
    assert old is not None
    assert new is not None
    assert (old.undone_by, old.undo_of, old.undone_at) == (undo_id, None, None)
    assert (new.undone_by, new.undo_of, new.undone_at) == (None, job_id, None)
    held = claim_one(store)
    record(store, held, "charge~undo", seq=5, kind="undo", value="null")
    record(store, held, "~undone", seq=6, kind="undo", value="null")
    finish(store, held)
    (old, new) = store.workflow_get([job_id, undo_id])
    assert old is not None
    assert new is not None
    assert old.undone_at == new.undone_at is not None


def test_its_record_is_that_of_both(store: Store) -> None:
    """In pages too."""
    job_id = ended(store)
    started(undo(store, job_id))
    held = claim_one(store)
    record(store, held, "charge~undo", seq=5, kind="undo", value="null")
    whole = ["charge", "charge~undo", "notify", "reserve", "think"]
    assert paths(load(store, held)) == whole
    found: list[str] = []
    after: str | None = None
    while True:
        page = load(store, held, after=after, limit=2)
        found += paths(page)
        after = page.next
        if after is None:
            break
    assert found == whole


def test_steps_inside_recorded_scopes_are_loaded_too(store: Store) -> None:
    held = begin(store)
    record(store, held, "s/a", seq=1, scope="s", undo=True)
    record(store, held, "s", seq=2, kind="scope", undo=True)
    assert paths(load(store, held)) == ["s"]
    store.undo_begin(held.job_id, 1, "no parcel")
    assert paths(load(store, held)) == ["s", "s/a"]


def test_asking_twice_gives_the_same_job(store: Store) -> None:
    job_id = ended(store)
    first = started(undo(store, job_id))
    assert undo(store, job_id) == UndoStarted(job_id, first, False)
    finish(store, claim_one(store))
    assert undo(store, job_id) == UndoStarted(job_id, first, False)


def test_only_workers_that_support_its_version_claim_it(store: Store) -> None:
    held = begin(store)
    record(store, held, undo=True, version=3)
    finish(store, held)
    undo_id = started(undo(store, held.job_id))
    (row,) = store.workflow_get([undo_id])
    assert row is not None
    assert row.version == 3
    task = held.task
    assert claim(store, versions={task: [1, 2]}) == []
    assert [one.job_id for one in claim(store, versions={task: [3]})] == [undo_id]


def test_jobs_that_cannot_be_undone(store: Store, untouched: Untouched) -> None:
    running = two_steps(store)
    parked = begin(store)
    record(store, parked, undo=True)
    park(store, parked, signal())
    without = begin(store)
    record(store, without)
    finish(store, without)
    unknown = two_steps(store)
    abort(store, unknown, outcome="unknown", fatal=True)
    plain = enqueue(store)
    number = store.ids_reserve(1)
    with untouched():
        refused(undo(store, 10**9, id=number), NotFound)
        refused(undo(store, plain, id=number), UndoRefused, found="it is pending")
        refused(undo(store, running.job_id, id=number), UndoRefused, found="it is running")
        assert "cancel it" in str(undo(store, running.job_id, id=number))
        refused(undo(store, parked.job_id, id=number), UndoRefused, found="it is parked")
        refused(undo(store, without.job_id, id=number), UndoRefused, found="none of them has an undo")
        assert "it is unknown" in str(undo(store, unknown.job_id, id=number))


def test_an_undo_cannot_be_undone(store: Store) -> None:
    job_id = ended(store)
    undo_id = started(undo(store, job_id))
    finish(store, claim_one(store))
    assert f"it undoes job {job_id} itself" in str(undo(store, undo_id))


def test_a_workflow_that_undoes_its_steps_itself(store: Store) -> None:
    held = two_steps(store)
    store.undo_begin(held.job_id, 1, "no parcel")
    abort(store, held, fatal=True)
    assert "has stopped at step 'charge'" in str(undo(store, held.job_id))
    store.job_retry([held.job_id], "ana")
    held = claim_one(store)
    record(store, held, "~undone", seq=9, kind="undo", value="null")
    abort(store, held, fatal=True)
    refused(undo(store, held.job_id), UndoRefused, found="it has undone them itself")


def test_a_retry_waits_for_the_undo_and_begins_a_new_generation(store: Store) -> None:
    """After an undo, a retry would otherwise pass over steps that were undone."""
    job_id = ended(store, "quarantined")
    undo_id = started(undo(store, job_id))
    refused(store.job_retry([job_id], "ana")[0], BeingUndone, job_id=job_id, undo_id=undo_id)
    assert state(store, job_id) == "quarantined"
    finish(store, claim_one(store))
    store.job_retry([job_id], "ana")
    held = claim_one(store)
    assert held.job_id == job_id
    assert load(store, held).undone
    store.workflow_continue(job_id, held.attempt, "{}", "ana")
    held = claim_one(store)
    history = load(store, held)
    assert (history.generation, history.undone, history.undoing) == (2, False, False)
    record(store, held, "charge", generation=2, undo=True)
    abort(store, held, fatal=True)
    again = started(undo(store, job_id))
    assert again != undo_id
    (new,) = store.workflow_get([again])
    assert new is not None
    assert new.generation == 2


def test_neither_goes_before_the_other(store: Store, clock: StoreClock) -> None:
    """Retention: the undo needs the steps of the other job, and that one says by which job it was undone."""
    job_id = ended(store)
    undo_id = started(undo(store, job_id))

    def prune(*states: str) -> int:
        clock.advance(timedelta(days=30))
        return store.job_prune(clock.now() - timedelta(days=1), None, 100, "ana", states or None).jobs

    assert prune() == 0
    store.job_cancel([undo_id], "ana")
    assert prune("cancelled") == 0  # it stays as long as the job that names it
    assert prune() >= 1
    prune()
    assert store.job_get([job_id, undo_id]) == [None, None]
