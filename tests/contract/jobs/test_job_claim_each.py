"""job_claim_each: a damaged row is stepped over and reported; every other job of its lane is claimed."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import pytest

from detent.errors import DetentError
from detent.model.limit_records import NewLimit
from detent.model.records import ClaimedEach
from detent.store.contract import Store
from detent.testing.stores import StoreClock
from tests.contract.jobs.sample_jobs import LEASE, claim, enqueue, job, state, succeeded
from tests.store.invariants.owner import Owner

NOWHERE = 9_999


def claim_each(store: Store, left_out: tuple[int, ...] = (), limit: int = 100) -> ClaimedEach:
    lease_id = store.ids_reserve(1)
    return store.job_claim_each(
        left_out, lease_id=lease_id, worker="ana", queues=None, tasks=["mail.send"], limit=limit, lease=LEASE
    )


def in_ready(owner: Owner, job_id: int) -> int:
    return int(owner.value(f"SELECT count(*) FROM {{ready}} WHERE job_id = {job_id}"))


def without_job(store: Store, owner: Owner, done: int) -> int:
    owner.run(f"INSERT INTO {{ready}} (lane_id, ready_at, job_id) SELECT lane_id, ready_at, {NOWHERE} FROM {{ready}}")
    return NOWHERE


def of_a_succeeded_job(store: Store, owner: Owner, done: int) -> int:
    owner.run(
        "INSERT INTO {ready} (lane_id, ready_at, job_id) "
        f"SELECT r.lane_id, j.due_at, j.id FROM {{job}} j, {{ready}} r WHERE j.id = {done}"
    )
    return done


def twice(store: Store, owner: Owner, done: int) -> int:
    other = enqueue(store)
    earlier = owner.seconds_after("ready_at", -60)
    owner.run(
        f"INSERT INTO {{ready}} (lane_id, ready_at, job_id) SELECT lane_id, {earlier}, job_id FROM {{ready}} "
        f"WHERE job_id = {other}"
    )
    return other


def in_an_unknown_state(store: Store, owner: Owner, done: int) -> int:
    other = enqueue(store)
    owner.plant(
        f"UPDATE {{job}} SET state = 'resting' WHERE id = {other}",
        without=("job_state_known", "job_finished_has_time", "job_running_has_open_attempt"),
    )
    return other


def pending_again(store: Store, owner: Owner, done: int) -> int:
    """A committed job that damage has made pending and ready."""
    owner.plant(
        f"UPDATE {{job}} SET state = 'pending', finished_at = NULL, committed_at = NULL WHERE id = {done}",
        "INSERT INTO {ready} (lane_id, ready_at, job_id) "
        f"SELECT r.lane_id, j.due_at, j.id FROM {{job}} j, {{ready}} r WHERE j.id = {done}",
    )
    return done


def refused_by_a_check(store: Store, owner: Owner, done: int) -> int:
    """A pending job with an open attempt: the claim would open a second one, which a CHECK refuses."""
    other = enqueue(store)
    owner.plant(f"UPDATE {{job}} SET attempt = 1 WHERE id = {other}", without=("job_running_has_open_attempt",))
    return other


DAMAGES = [without_job, of_a_succeeded_job, twice, in_an_unknown_state, pending_again, refused_by_a_check]


@pytest.mark.parametrize("limited", [False, True])
@pytest.mark.parametrize("damage", DAMAGES)
def test_everything_else_is_claimed(store: Store, store_url: str, damage: Any, limited: bool) -> None:
    """R3: the claim of all at once is refused; job by job it goes on without the damaged row and reports it."""
    if limited:
        store.limit_put(
            NewLimit(key="mail", rate=None, per=1, burst=1, concurrency_max=10, tasks=("mail.send",), queues=())
        )
    done_before = succeeded(store)
    healthy = enqueue(store)
    with closing(Owner(store_url)) as owner:
        bad = damage(store, owner, done_before)
        with pytest.raises(DetentError):
            claim(store)
        assert state(store, healthy) == "pending"
        done = claim_each(store)
        claimed = {held.job_id for held in done.jobs}
        assert claimed == ({healthy, bad} if damage is twice else {healthy})
        (row,) = done.bad
        assert (row.entity, row.entity_id) == ("job", str(bad))
        assert row.cause
        assert in_ready(owner, bad) == (1 if damage is refused_by_a_check else 0)
        after = enqueue(store)
        if damage is refused_by_a_check:
            assert [held.job_id for held in claim_each(store, left_out=(bad,)).jobs] == [after]
        else:
            assert [held.job_id for held in claim(store)] == [after]
        if damage is pending_again:
            store.repair("ana", "the counts", apply=True)
        if damage in (in_an_unknown_state, refused_by_a_check):
            owner.plant(f"DELETE FROM {{job}} WHERE id = {bad}", f"DELETE FROM {{ready}} WHERE job_id = {bad}")
            owner.validate()


def test_a_committed_job_becomes_succeeded_and_does_not_run_again(store: Store, store_url: str) -> None:
    """C1: a later attempt finds the record and is a no-op. That is on record, and nothing is left to repair."""
    done = succeeded(store)
    enqueue(store)
    with closing(Owner(store_url)) as owner:
        pending_again(store, owner, done)
    claim_each(store)
    row = job(store, done)
    assert (row.state, row.attempt) == ("succeeded", 1)
    (execution,) = store.job_executions(done)
    assert (row.committed_at, row.finished_at) == (execution.committed_at, execution.done_at)
    assert [line.trigger for line in store.transitions("job", str(done))][-1] == "repair"
    # What was planted was not counted, so the counts are wrong, and nothing else.
    assert {broken.invariant for broken in store.verify()} <= {"finished_counts_equal_jobs"}
    store.repair("ana", "the counts", apply=True)


def test_in_order_where_nothing_is_damaged(store: Store, clock: StoreClock) -> None:
    """J4: the same order as a claim of all at once; a key held until the claim is given back."""
    first = enqueue(store, tenant="b", priority=1)
    second = enqueue(store, tenant="a")
    third = enqueue(store, tenant="b", key="once", unique_pending=True)
    done = claim_each(store)
    assert ([held.job_id for held in done.jobs], done.bad) == ([second, first, third], ())
    assert {state(store, one) for one in (first, second, third)} == {"running"}
    assert enqueue(store, tenant="b", key="once", unique_pending=True) != third
