"""A job that has committed and that damage has made ready again has no second effect, whatever damage left of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from detent.errors import AlreadyCommitted, DetentError
from detent.model.records import Aborted, Claimed, Finish
from detent.store.contract import Store
from detent.testing.stores import StoreClock, plain_connection
from tests.contract.jobs.sample_jobs import LEASE, abort, claim, commit, enqueue, job, state, succeeded
from tests.contract.refusals import Untouched, refused
from tests.store.invariants.owner import Owner

TRACES = [("job", "id"), *((name, "job_id") for name in ("execution", "transition_log", "ready", "waiting"))]


@pytest.fixture
def held(store: Store, store_url: str) -> Iterator[Claimed]:
    """The second attempt at a job whose first one has committed. Nothing on the job's row tells of the first."""
    done = succeeded(store)
    enqueue(store)
    with closing(Owner(store_url)) as owner:
        owner.plant(
            "UPDATE {job} SET state = 'pending', finished_at = NULL, committed_at = NULL, lease_id = NULL, "
            f"leased_at = NULL, started_at = NULL WHERE id = {done}",
            "INSERT INTO {ready} (lane_id, ready_at, job_id) "
            f"SELECT r.lane_id, j.due_at, j.id FROM {{job}} j, {{ready}} r WHERE j.id = {done}",
        )
    found = {one.job_id: one for one in claim(store)}
    assert found[done].attempt == 2
    yield found[done]
    with closing(Owner(store_url)) as owner:
        owner.plant(*(f"DELETE FROM {{{name}}} WHERE {column} = {done}" for name, column in TRACES))
        owner.run("DELETE FROM {finished_count}", "DELETE FROM {finished_delta}", "DELETE FROM {succeeded_batch}")
    store.repair("ana", "the counts", apply=True)


def effects(url: str) -> int:
    with closing(plain_connection(url)) as connection:
        ((count,),) = connection.execute("SELECT count(*) FROM effect").fetchall()
        return int(count)


def act(store: Store, held: Claimed, result: str | None) -> None:
    with store.commit_block(held.job_id, held.attempt) as tx:
        tx.execute("INSERT INTO effect VALUES (1)")
        if result is not None:
            tx.result(result)


def comes_to_rest(store: Store, job_id: int) -> None:
    """The next claim finds the commit, and the job is succeeded without another attempt."""
    with pytest.raises(DetentError):
        claim(store)
    lease_id = store.ids_reserve(1)
    store.job_claim_each((), lease_id=lease_id, worker="ana", queues=None, tasks=["mail.send"], limit=9, lease=LEASE)
    assert (state(store, job_id), job(store, job_id).attempt) == ("succeeded", 2)


def test_its_commit_is_refused(store: Store, held: Claimed, untouched: Untouched) -> None:
    """C1: the commit of the first attempt is on record, though not on the job."""
    with untouched():
        refused(store.job_commit(commit(held, result="2")), AlreadyCommitted, job_id=held.job_id, attempt=1)
        refused(store.effect_begin(held.job_id, 2, "probe"), AlreadyCommitted, job_id=held.job_id, attempt=1)


@pytest.mark.parametrize("result", [None, "2"])
def test_its_block_leaves_nothing(store: Store, store_url: str, held: Claimed, result: str | None) -> None:
    """C1, C2: the user's statements are rolled back, or not run at all."""
    with closing(plain_connection(store_url)) as connection:
        connection.execute("CREATE TABLE effect (job bigint NOT NULL)")
        connection.commit()
    with pytest.raises(AlreadyCommitted):
        act(store, held, result)
    assert effects(store_url) == 0


@pytest.mark.parametrize(
    ("outcome", "more"),
    [("error", {}), ("error", {"fatal": True}), ("crashed", {}), ("timed_out", {}), ("snoozed", {})],
)
def test_however_it_ends_it_is_given_back(store: Store, held: Claimed, outcome: Any, more: dict[str, Any]) -> None:
    """C1: it is neither counted nor quarantined, since its job has succeeded."""
    assert abort(store, held, outcome, error="no", **more) == Aborted(held.job_id, 2, "released", "pending")
    comes_to_rest(store, held.job_id)


def test_a_cancel_does_not_turn_its_success_around(store: Store, held: Claimed) -> None:
    """C1: a request to cancel comes too late for an effect that has happened."""
    store.job_cancel([held.job_id], "ana", "enough")
    assert abort(store, held, "cancelled") == Aborted(held.job_id, 2, "released", "pending")
    comes_to_rest(store, held.job_id)


def test_a_lease_that_runs_out_gives_it_back(store: Store, held: Claimed, clock: StoreClock) -> None:
    """C1, J6: the reaper knows it too."""
    clock.advance(LEASE + 1)
    assert held.job_id in store.lease_reap(10).aborted
    assert [one.outcome for one in store.job_executions(held.job_id)] == ["done", "released"]
    comes_to_rest(store, held.job_id)


def test_its_finish_is_refused_and_writes_nothing(store: Store, held: Claimed, untouched: Untouched) -> None:
    """C1: a plain function has run again by then; its success is not written a second time."""
    with untouched(), pytest.raises(DetentError):
        store.job_finish([Finish(held.job_id, held.attempt)], "ana")
