"""The commit boundary: the effect and its mark are one; a zombie's effect comes to nothing."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import pytest

from detent.errors import AlreadyCommitted, IdConflict, LeaseLost
from detent.model.records import Claimed, Finished
from detent.store.contract import Store
from detent.testing.stores import StoreClock, another_store, plain_connection
from tests.contract.concurrent_callers import PATIENCE, die_at_commit
from tests.contract.jobs.sample_jobs import LEASE, claim, claim_one, enqueue, finish, job, new_job, state
from tests.contract.refusals import Untouched, refused

APPLY = "INSERT INTO effect VALUES (:job)"


class Effects:
    """The user's own table: what has happened, and how often."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection

    def apply(self, job_id: int) -> None:
        """Without the boundary: the effect on a connection of the user's own, the record elsewhere."""
        self.connection.execute(f"INSERT INTO effect VALUES ({job_id})")
        self.connection.commit()

    def count(self) -> int:
        (row,) = self.connection.execute("SELECT count(*) FROM effect").fetchall()
        self.connection.rollback()
        return int(row[0])


@pytest.fixture
def effects(store: Store, store_url: str) -> Iterator[Effects]:
    with closing(plain_connection(store_url)) as connection:
        connection.execute("CREATE TABLE effect (job bigint NOT NULL)")
        connection.commit()
        yield Effects(connection)


def two_workers_with_one_job(store: Store, clock: StoreClock) -> tuple[Claimed, Claimed]:
    """FM_001: the first is paused past its lease, the second has the job now, and the first wakes up."""
    enqueue(store)
    zombie = claim_one(store, worker="zombie")
    clock.advance(LEASE + 1)
    store.lease_reap(10)
    holder = claim_one(store, worker="holder")
    assert zombie.job_id == holder.job_id
    return zombie, holder


def test_without_the_boundary_both_apply(store: Store, clock: StoreClock, effects: Effects) -> None:
    """C4: FM_001 happens with the boundary switched off: the finish is fenced, the effect is not."""
    for worker in two_workers_with_one_job(store, clock):
        effects.apply(worker.job_id)
        finish(store, worker)
    assert effects.count() == 2


def test_with_the_boundary_only_the_holder_applies(store: Store, clock: StoreClock, effects: Effects) -> None:
    """C1, C2, C4: FM_001 is prevented: the zombie's transaction leaves nothing."""
    zombie, holder = two_workers_with_one_job(store, clock)
    with pytest.raises(LeaseLost, match="attempt 2 is current"), store.commit_block(zombie.job_id, 1) as tx:
        tx.execute(APPLY, {"job": zombie.job_id})
    assert effects.count() == 0
    with store.commit_block(holder.job_id, 2) as tx:
        assert tx.execute(APPLY, {"job": holder.job_id}) == ([], 1)
        tx.result('"paid"')
    with pytest.raises(AlreadyCommitted), store.commit_block(zombie.job_id, 1) as tx:
        tx.execute(APPLY, {"job": zombie.job_id})
    assert finish(store, holder) == Finished(holder.job_id, 2)
    assert (effects.count(), job(store, holder.job_id).result) == (1, '"paid"')


def test_a_lease_that_expires_inside_the_block(
    store: Store, clock: StoreClock, effects: Effects, untouched: Untouched
) -> None:
    """C4: paused between the check and the mark: the mark refuses, and nothing of the block remains."""
    enqueue(store)
    held = claim_one(store)
    intent = new_job(store)
    with (  # noqa: PT012
        untouched(),
        pytest.raises(LeaseLost, match="its lease has expired"),
        store.commit_block(held.job_id, held.attempt) as tx,
    ):
        tx.execute(APPLY, {"job": held.job_id})
        tx.intend(intent)
        clock.advance(LEASE + 1)
    assert effects.count() == 0


def test_an_exception_inside_the_block_leaves_nothing(store: Store, effects: Effects, untouched: Untouched) -> None:
    """C2: prepare is safe to repeat; the holder may enter again."""
    enqueue(store)
    held = claim_one(store)
    with (  # noqa: PT012
        untouched(),
        pytest.raises(ZeroDivisionError),
        store.commit_block(held.job_id, held.attempt) as tx,
    ):
        tx.execute(APPLY, {"job": held.job_id})
        raise ZeroDivisionError
    assert effects.count() == 0
    with store.commit_block(held.job_id, held.attempt) as tx:
        tx.execute(APPLY, {"job": held.job_id})
    assert effects.count() == 1


def test_a_refused_intent_refuses_the_block(store: Store, effects: Effects, untouched: Untouched) -> None:
    """C3: effect, mark and intents are one."""
    taken = enqueue(store)
    held = claim_one(store)
    with (  # noqa: PT012
        untouched(),
        pytest.raises(IdConflict),
        store.commit_block(held.job_id, held.attempt) as tx,
    ):
        tx.execute(APPLY, {"job": held.job_id})
        tx.intend(new_job(store, id=taken, payload="0"))
    assert effects.count() == 0


def test_the_users_statements_see_each_other(store: Store, effects: Effects) -> None:
    """C2: one transaction: rows, row counts, and the record of the intents in it."""
    enqueue(store)
    held = claim_one(store)
    intent = new_job(store, task="receipt")
    with store.commit_block(held.job_id, held.attempt) as tx:
        tx.execute(APPLY, {"job": 1})
        tx.execute("INSERT INTO effect VALUES (:a), (:b)", {"a": 2, "b": 3})
        assert tx.execute("SELECT job FROM effect WHERE job > :low ORDER BY job", {"low": 1})[0] == [(2,), (3,)]
        assert tx.execute("UPDATE effect SET job = job + 10 WHERE job >= :low", {"low": 2})[1] == 2
        assert tx.execute("SELECT ':no' , 'x:y'")[0] == [(":no", "x:y")]
        tx.intend(intent)
    assert effects.count() == 3
    assert job(store, held.job_id).committed_at is not None
    assert [each.job_id for each in claim(store, tasks=["receipt"])] == [intent.id]


def test_a_second_block_is_refused(store: Store, effects: Effects) -> None:
    """C1: at most one commit, by whichever attempt."""
    enqueue(store)
    held = claim_one(store)
    for _ in range(2):
        try:
            with store.commit_block(held.job_id, held.attempt) as tx:
                tx.execute(APPLY, {"job": held.job_id})
        except AlreadyCommitted as error:
            refused(error, AlreadyCommitted, job_id=held.job_id, attempt=1)
    assert effects.count() == 1


@pytest.mark.parametrize("before", [True, False], ids=["before the commit", "after the commit"])
def test_a_lost_answer_is_resolved_by_looking(
    store: Store, store_url: str, clock: StoreClock, effects: Effects, before: bool
) -> None:
    """C6, G7: the process died at its commit and nobody heard the answer: the record knows, and it is acted on."""
    enqueue(store)
    lease_id = store.ids_reserve(1)
    held = claim_one(store, lease_id=lease_id)
    worker = multiprocessing.get_context("spawn").Process(
        target=die_at_commit, args=(store_url, held.job_id, held.attempt), kwargs={"before": before}
    )
    worker.start()
    worker.join(PATIENCE)
    assert worker.exitcode == 9
    (found,) = store.claim_find(lease_id)
    assert (found.job_id, found.attempt, found.committed) == (held.job_id, 1, not before)
    assert effects.count() == (0 if before else 1)
    if not found.committed:
        with store.commit_block(found.job_id, found.attempt) as tx:
            tx.execute(APPLY, {"job": found.job_id})
    assert finish(store, found) == Finished(held.job_id, 1)
    assert (effects.count(), state(store, held.job_id)) == (1, "succeeded")


def test_a_reaper_that_comes_during_the_block(
    store: Store, store_url: str, clock: StoreClock, effects: Effects
) -> None:
    """C4: whether it takes the job at once or waits for the block, the block leaves nothing and the job goes on."""
    enqueue(store)
    held = claim_one(store)
    with ThreadPoolExecutor(1) as thread, closing(another_store(store_url, clock)) as other:
        with (  # noqa: PT012
            pytest.raises(LeaseLost),
            store.commit_block(held.job_id, held.attempt) as tx,
        ):
            tx.execute(APPLY, {"job": held.job_id})
            clock.advance(LEASE + 1)
            reaping = thread.submit(other.lease_reap, 10)
        assert reaping.result().aborted == (held.job_id,)
    assert effects.count() == 0
    assert claim_one(store).attempt == 2


def test_another_process_does_not_see_half_a_block(
    store: Store, store_url: str, clock: StoreClock, effects: Effects
) -> None:
    """C2: until the mark is durable there is neither effect nor mark nor intent to be seen."""
    enqueue(store)
    held = claim_one(store)
    intent = new_job(store)
    with closing(another_store(store_url, clock)) as onlooker:
        with store.commit_block(held.job_id, held.attempt) as tx:
            tx.execute(APPLY, {"job": held.job_id})
            tx.intend(intent)
            assert onlooker.job_get([intent.id]) == [None]
            assert job(onlooker, held.job_id).committed_at is None
            assert effects.count() == 0
        assert job(onlooker, held.job_id).committed_at is not None
        assert job(onlooker, intent.id).state == "pending"
        assert effects.count() == 1
