"""queue_pause: no claim enters until it is resumed."""

from __future__ import annotations

from detent.model.records import Finished, Moved
from detent.store.contract import Store
from detent.testing.stores import StoreClock
from tests.contract.jobs.sample_jobs import claim, claim_one, enqueue, finish
from tests.contract.refusals import Untouched


def test_nothing_is_claimed_and_nothing_is_refused(store: Store, clock: StoreClock) -> None:
    """J12: enqueue goes on, and so does what runs already."""
    running = enqueue(store, queue="mail")
    held = claim_one(store)
    assert store.queue_pause("mail", "ana", "provider down") == Moved("mail", "paused", True)
    enqueue(store, queue="mail")
    assert claim(store) == []
    assert finish(store, held) == Finished(running, 1)
    enqueue(store, queue="other")
    assert len(claim(store)) == 1


def test_it_is_recorded(store: Store, clock: StoreClock) -> None:
    """E4: who, why and when."""
    clock.advance(1)
    store.queue_pause("mail", "ana", "provider down")
    (line,) = store.transitions("queue", "mail")
    assert (line.from_state, line.to_state, line.trigger) == ("open", "paused", "pause")
    assert (line.actor, line.reason, line.at, line.forced) == ("ana", "provider down", clock.now(), False)


def test_pausing_a_paused_queue_changes_nothing(store: Store, clock: StoreClock, untouched: Untouched) -> None:
    """L3"""
    store.queue_pause("mail", "ana", "first")
    clock.advance(1)
    with untouched():
        assert store.queue_pause("mail", "bob", "second") == Moved("mail", "paused", False)
