"""effect_begin: an attempt is about to act where its end may go unheard, and who can tell afterwards is on record."""

from __future__ import annotations

from datetime import timedelta
from typing import Literal

import pytest

from detent.errors import AlreadyCommitted, LeaseLost
from detent.model.records import Aborted, EffectBegun
from detent.store.contract import Store
from detent.testing.stores import StoreClock
from tests.contract.jobs.sample_jobs import abort, claim, claim_one, commit, enqueue, job
from tests.contract.refusals import Untouched, refused

LOST = ("expired", "crashed", "timed_out")


def ends(store: Store, clock: StoreClock, outcome: str, **overrides: object) -> tuple[str | None, str]:
    """Claim, begin the effect under a probe, and end in this way: the outcome on record, and where it led."""
    held = claim_one(store)
    store.effect_begin(held.job_id, held.attempt, "probe")
    if outcome == "expired":
        clock.advance(31)
        store.lease_reap(10)
    else:
        abort(store, held, outcome, **overrides)
    return store.job_executions(held.job_id)[-1].outcome, job(store, held.job_id).state


def test_it_starts_the_attempt_and_tells_the_job_apart(store: Store, clock: StoreClock) -> None:
    """C5, C7: once on record it stays; asked again, it answers the same again."""
    job_id = enqueue(store, nonce=77)
    held = claim_one(store)
    clock.advance(2)
    told: tuple[Literal["probe", "marker"], ...] = ("probe", "probe", "marker")
    for evidence in told:
        assert store.effect_begin(job_id, held.attempt, evidence) == EffectBegun(job_id, held.attempt, 77)
        clock.advance(1)
    assert job(store, job_id).started_at == clock.now() - timedelta(seconds=3)


def test_only_the_holder(store: Store, clock: StoreClock, untouched: Untouched) -> None:
    """C4: whoever lost the lease may not act."""
    job_id = enqueue(store)
    held = claim_one(store)
    with untouched():
        refused(store.effect_begin(job_id, held.attempt + 1, "probe"), LeaseLost, found="attempt 1 is current")
        refused(store.effect_begin(10**12, 1, "probe"), LeaseLost, found="no such job")
    clock.advance(31)
    with untouched():
        refused(store.effect_begin(job_id, held.attempt, "marker"), LeaseLost, found="its lease has expired")


def test_not_after_the_commit(store: Store, untouched: Untouched) -> None:
    """C1: what has happened is not begun again."""
    job_id = enqueue(store)
    held = claim_one(store)
    store.job_commit(commit(held))
    with untouched():
        refused(store.effect_begin(job_id, held.attempt, "marker"), AlreadyCommitted, attempt=held.attempt)


@pytest.mark.parametrize("outcome", LOST)
def test_what_a_probe_can_tell_goes_back_for_it(store: Store, clock: StoreClock, outcome: str) -> None:
    """C5: also where no attempt was left, one more is there for the probe; after it a person decides."""
    enqueue(store, idempotent=False, attempts_max=1, expires_at=clock.now() + timedelta(seconds=40))
    assert ends(store, clock, outcome) == ("unknown", "pending")
    clock.advance(60)
    assert store.job_expire(10) == [], "what may have happened does not expire unseen"
    assert ends(store, clock, outcome) == ("unknown", "quarantined")
    assert claim(store) == []


def test_a_probe_that_cannot_tell_uses_up_no_attempt(store: Store, clock: StoreClock) -> None:
    """C5: it may look again, however often; when it gives up, a person decides."""
    job_id = enqueue(store, idempotent=False, attempts_max=1)
    assert ends(store, clock, "crashed") == ("unknown", "pending")
    for _ in range(3):
        assert ends(store, clock, "unknown", error="the bank is closed") == ("unknown", "pending")
    assert ends(store, clock, "unknown", error="the bank is gone", fatal=True) == ("unknown", "quarantined")
    row = job(store, job_id)
    assert (row.attempt, row.spared, row.error) == (5, 3, "the bank is gone")
    assert [one.counted for one in store.job_executions(job_id)] == [True, False, False, False, True]


def test_unknown_comes_before_a_cancel(store: Store, clock: StoreClock) -> None:
    """C5, J8: a cancel would hide that the effect may have happened."""
    job_id = enqueue(store, idempotent=False)
    held = claim_one(store)
    store.effect_begin(job_id, held.attempt, "probe")
    store.job_cancel([job_id], "ana")
    assert abort(store, held, "crashed") == Aborted(job_id, 1, "unknown", "pending")
    assert ends(store, clock, "cancelled") == ("cancelled", "cancelled")


def test_without_a_probe_a_person_decides_at_once(store: Store, clock: StoreClock) -> None:
    job_id = enqueue(store, idempotent=False)
    held = claim_one(store)
    store.job_start([(job_id, held.attempt)])
    assert abort(store, held, "unknown") == Aborted(job_id, 1, "unknown", "quarantined")


@pytest.mark.parametrize("outcome", [*LOST, "error"])
@pytest.mark.parametrize("entered", [False, True])
def test_used_up_after_a_block_elsewhere_is_unknown(
    store: Store, clock: StoreClock, outcome: str, entered: bool
) -> None:
    """C7: the effect may be there, also where a later attempt never came that far."""
    job_id = enqueue(store, attempts_max=2)
    for attempt in (1, 2, 3) if outcome == "expired" else (1, 2):
        held = claim_one(store)
        if entered and attempt == 1:
            store.effect_begin(job_id, attempt, "marker")
        if outcome == "expired":
            clock.advance(31)
            store.lease_reap(10)
        else:
            abort(store, held, outcome)
    first, *_, last = store.job_executions(job_id)
    assert (first.outcome, first.next_state) == (outcome, "pending")
    assert (last.outcome, last.next_state) == ("unknown" if entered else outcome, "quarantined")
    if entered:
        store.effect_settle(job_id, True, "ana", "it is in their books")
        assert job(store, job_id).state == "succeeded"


@pytest.mark.parametrize("how", ["cancelled", "fatal", "no dead letters"])
def test_no_other_end_hides_a_block_elsewhere(store: Store, how: str) -> None:
    """C7: cancelled, fatal, or without dead letters: what may be there is for a person."""
    job_id = enqueue(store, attempts_max=1, dead_letter=how != "no dead letters")
    held = claim_one(store)
    store.effect_begin(job_id, held.attempt, "marker")
    outcome = "cancelled" if how == "cancelled" else "error"
    if how == "cancelled":
        store.job_cancel([job_id], "ana")
    assert abort(store, held, outcome, fatal=how == "fatal") == Aborted(job_id, 1, "unknown", "quarantined")
