"""signal_send: the mailbox of a workflow takes signals at any time, in order, and wakes it."""

from __future__ import annotations

import pytest

from detent.errors import JobEnded, KeyConflict, MailboxFull, NotFound
from detent.model.workflow_records import NewSignal, SignalSent
from detent.store.contract import Store
from detent.testing.stores import StoreClock
from tests.contract.jobs.sample_jobs import brought_to, claim, claim_one, enqueue, finish, job
from tests.contract.refusals import Untouched, refused
from tests.contract.workflows.sample_workflows import (
    begin,
    is_sent,
    look,
    park,
    parked_for_signal,
    send,
    signal,
)


def test_a_signal_is_kept_before_the_wait(store: Store, clock: StoreClock) -> None:
    """F5: also before the first attempt."""
    job_id = enqueue(store)
    sent = is_sent(send(store, job_id, payload='{"ok":true}', reason="asked"))
    assert (sent.job_id, sent.created) == (job_id, True)
    (row,) = store.signal_list(job_id)
    assert (row.name, row.seq, row.payload, row.dedupe, row.actor) == ("go", sent.seq, '{"ok":true}', None, "bob")
    assert (row.reason, row.sent_at, row.path, row.taken_at) == ("asked", clock.now(), None, None)
    clock.advance(3600)
    held = claim_one(store)
    assert look(store, held, signal()).value == '{"ok":true}'


def test_it_wakes_a_workflow_that_waits_for_it(store: Store, clock: StoreClock) -> None:
    job_id = parked_for_signal(store)
    clock.advance(10)
    assert claim(store) == []
    send(store, job_id)
    assert job(store, job_id).due_at == clock.now()
    assert store.wait_list().rows == []
    assert claim_one(store).attempt == 2


def test_another_name_wakes_nobody(store: Store) -> None:
    job_id = parked_for_signal(store)
    send(store, job_id, "stop")
    assert claim(store) == []
    assert len(store.wait_list(job_id=job_id).rows) == 1


def test_a_workflow_that_only_sleeps_is_not_woken(store: Store, clock: StoreClock) -> None:
    held = begin(store)
    park(store, held, until=clock.advance(0).replace(year=2030))
    send(store, held.job_id)
    assert claim(store) == []


def test_a_running_workflow_finds_it_when_it_parks(store: Store) -> None:
    """F5: between looking and parking."""
    held = begin(store)
    send(store, held.job_id)
    park(store, held, signal())
    assert claim_one(store).attempt == 2


def test_many_at_once_are_in_order(store: Store) -> None:
    """F7: the order of a call is the order of the mailbox, whatever the names."""
    first, second = parked_for_signal(store), parked_for_signal(store)
    items = [
        NewSignal(job_id=job_id, name=name, payload=str(n), actor="bob")
        for n, (job_id, name) in enumerate([(first, "go"), (second, "go"), (first, "stop"), (first, "go")])
    ]
    answers = [is_sent(answer) for answer in store.signal_send(items)]
    assert [answer.job_id for answer in answers] == [first, second, first, first]
    assert [row.payload for row in store.signal_list(first)] == ["0", "2", "3"]
    assert [row.seq for row in store.signal_list(first)] == [answers[n].seq for n in (0, 2, 3)]
    assert {held.job_id for held in claim(store)} == {first, second}


def test_the_same_dedupe_is_the_same_signal(store: Store) -> None:
    """F6: also in one call, and also if the workflow has ended meanwhile."""
    job_id = enqueue(store)
    sent = is_sent(send(store, job_id, dedupe="d"))
    assert send(store, job_id, dedupe="d") == SignalSent(job_id, sent.seq, False)
    twice = [NewSignal(job_id=job_id, name="go", payload="1", actor="bob", dedupe="e")] * 2
    one, two = (is_sent(answer) for answer in store.signal_send(twice))
    assert (one.created, two.created, one.seq == two.seq) == (True, False, True)
    assert is_sent(send(store, job_id, "stop", dedupe="d")).created
    assert is_sent(send(store, job_id)).created
    assert len(store.signal_list(job_id)) == 4
    finish(store, claim_one(store))
    assert send(store, job_id, dedupe="d") == SignalSent(job_id, sent.seq, False)


def test_the_same_dedupe_with_another_payload_is_refused(store: Store, untouched: Untouched) -> None:
    job_id = enqueue(store)
    send(store, job_id, dedupe="d")
    with untouched():
        answer = send(store, job_id, payload="2", dedupe="d")
        refused(answer, KeyConflict, key="d", job_id=job_id, of="signal")
    assert str(answer).startswith(f"job {job_id} has a signal of that name with dedupe 'd' and another payload")


@pytest.mark.parametrize("found", ["succeeded", "failed", "cancelled"])
def test_a_job_that_has_ended_takes_none(store: Store, untouched: Untouched, found: str) -> None:
    job_id = brought_to(store, found)
    with untouched():
        refused(send(store, job_id), JobEnded, job_id=job_id, state=found)


def test_a_job_in_quarantine_gets_its_signals(store: Store) -> None:
    job_id = brought_to(store, "quarantined")
    send(store, job_id)
    store.job_retry([job_id], "bob")
    assert look(store, claim_one(store), signal()).value == "1"


def test_no_such_job(store: Store, untouched: Untouched) -> None:
    with untouched():
        refused(send(store, 10**6), NotFound)


def test_a_mailbox_has_room_for_a_thousand_unread_signals(store: Store) -> None:
    job_id = enqueue(store)
    items = [NewSignal(job_id=job_id, name=f"n{n % 7}", payload="1", actor="bob") for n in range(1001)]
    *sent, last = store.signal_send(items)
    assert all(isinstance(answer, SignalSent) for answer in sent)
    refused(last, MailboxFull, job_id=job_id, unread=1000)
    held = claim_one(store)
    look(store, held, signal("n3"))
    assert is_sent(send(store, job_id)).created
    refused(send(store, job_id), MailboxFull)


def test_a_refusal_harms_no_other_item(store: Store) -> None:
    ended, job_id = brought_to(store, "succeeded"), parked_for_signal(store)
    items = [NewSignal(job_id=one, name="go", payload="1", actor="bob") for one in (ended, job_id)]
    refusal, sent = store.signal_send(items)
    refused(refusal, JobEnded)
    assert is_sent(sent).created
    assert claim_one(store).job_id == job_id


def test_signals_of_open_transactions_wake_too(store: Store) -> None:
    """`apart` leaves the wake-up to a service, which has it done at the next call."""
    job_id = parked_for_signal(store)
    store.signal_send([NewSignal(job_id=job_id, name="go", payload="1", actor="bob")], apart=True)
    store.workflow_wake(10)
    assert claim_one(store).job_id == job_id
