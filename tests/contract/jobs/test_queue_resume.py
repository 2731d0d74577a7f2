"""queue_resume: claims enter again."""

from __future__ import annotations

from detent.model.records import Moved
from detent.store.contract import Store
from detent.testing.stores import StoreClock
from tests.contract.jobs.sample_jobs import claim, enqueue
from tests.contract.refusals import Untouched


def test_claims_enter_again(store: Store, clock: StoreClock) -> None:
    """J12, E4"""
    ids = [enqueue(store, queue="mail") for _ in range(2)]
    store.queue_pause("mail", "ana")
    assert claim(store) == []
    clock.advance(1)
    assert store.queue_resume("mail", "bob", "provider is back") == Moved("mail", "open", True)
    assert [held.job_id for held in claim(store)] == ids
    line = store.transitions("queue", "mail")[-1]
    assert (line.from_state, line.to_state, line.trigger) == ("paused", "open", "resume")
    assert (line.actor, line.reason, line.at) == ("bob", "provider is back", clock.now())


def test_an_open_queue_needs_nothing(store: Store, clock: StoreClock, untouched: Untouched) -> None:
    """L3: also one that nobody has ever heard of."""
    with untouched():
        assert store.queue_resume("mail", "ana") == Moved("mail", "open", False)
    store.queue_pause("mail", "ana")
    store.queue_resume("mail", "ana")
    clock.advance(1)
    with untouched():
        assert store.queue_resume("mail", "bob") == Moved("mail", "open", False)
