"""signal_redeem: the signal of a token that counts for one wait."""

from __future__ import annotations

from typing import Any

from detent.errors import JobEnded, KeyConflict, MailboxFull, NotFound, WaitOver
from detent.model.records import Claimed
from detent.model.workflow_records import NewSignal, Pending, SignalSent
from detent.store.contract import Store
from detent.testing.stores import StoreClock
from tests.contract.jobs.sample_jobs import claim, claim_one, enqueue, finish, job
from tests.contract.refusals import Untouched, refused
from tests.contract.workflows.sample_workflows import begin, look, park, signal, step

TOKEN = "token go~"


def redeem(store: Store, job_id: int, payload: str = "1", *, generation: int = 1, token: str = TOKEN) -> Any:
    """Redeem a token; the answer."""
    item = NewSignal(job_id=job_id, name="go", payload=payload, dedupe="token:1", actor="bob")
    return store.signal_redeem(item, generation, token)


def look_bound(store: Store, held: Claimed, *, lasts: float | None = None) -> Any:
    """Look at the wait `w`, for which the token counts."""
    bound = step(held, TOKEN, kind="token", fingerprint="w", value="null")
    return look(store, held, signal(), steps=(bound,), lasts=lasts)


def test_before_the_wait_and_while_it_lasts(store: Store, clock: StoreClock) -> None:
    early = enqueue(store)
    assert isinstance(redeem(store, early), SignalSent)
    held = claim_one(store)
    assert look_bound(store, held).value == "1"

    held = begin(store)
    assert isinstance(look_bound(store, held), Pending)
    park(store, held, signal())
    assert claim(store) == []
    assert redeem(store, held.job_id, "2").created
    assert job(store, held.job_id).due_at == clock.now()
    assert look_bound(store, claim_one(store)).value == "2"


def test_not_after_the_wait(store: Store, clock: StoreClock, untouched: Untouched) -> None:
    held = begin(store)
    assert look_bound(store, held, lasts=0).kind == "timeout"
    with untouched():
        refused(redeem(store, held.job_id), WaitOver, job_id=held.job_id, signal="go")
    assert store.signal_list(held.job_id) == []


def test_a_wait_of_another_token_does_not_matter(store: Store) -> None:
    held = begin(store)
    assert look_bound(store, held, lasts=0).kind == "timeout"
    assert isinstance(redeem(store, held.job_id, token="token go#2~"), SignalSent)


def test_a_full_mailbox(store: Store) -> None:
    job_id = enqueue(store)
    store.signal_send([NewSignal(job_id=job_id, name="n", payload="1", actor="bob") for _ in range(1000)])
    refused(redeem(store, job_id), MailboxFull, job_id=job_id, unread=1000)


def test_not_in_another_generation(store: Store, untouched: Untouched) -> None:
    """A workflow that has continued asks its questions anew."""
    held = begin(store)
    store.workflow_continue(held.job_id, held.attempt, "{}", "ana")
    with untouched():
        refused(redeem(store, held.job_id), WaitOver)
    assert isinstance(redeem(store, held.job_id, generation=2), SignalSent)


def test_the_same_again_is_the_same_even_after_the_wait(store: Store, untouched: Untouched) -> None:
    held = begin(store)
    first = redeem(store, held.job_id)
    assert look_bound(store, held).value == "1"
    assert redeem(store, held.job_id) == SignalSent(held.job_id, first.seq, False)
    with untouched():
        refused(redeem(store, held.job_id, "2"), KeyConflict, job_id=held.job_id)
    finish(store, held)
    assert redeem(store, held.job_id) == SignalSent(held.job_id, first.seq, False)


def test_an_ended_or_unknown_job(store: Store, untouched: Untouched) -> None:
    held = begin(store)
    finish(store, held)
    with untouched():
        refused(redeem(store, held.job_id), JobEnded, state="succeeded")
        refused(redeem(store, 10**12), NotFound)
