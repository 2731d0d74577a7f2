"""workflow_spawn with a limit: at most so many children of a group run at once."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from detent.errors import InUse, InvalidInput
from detent.model.limit_records import ChildrenLimit, LimitFilter, NewLimit, limit_of_child_task
from detent.model.records import Claimed
from detent.store.contract import Store
from detent.testing.stores import StoreClock
from detent.views.job_explanation import explain
from tests.contract.jobs.sample_jobs import LEASE, abort, claim, enqueue, finish, job, new_job
from tests.contract.refusals import Untouched, refused
from tests.contract.workflows.sample_workflows import begin, children, is_spawned, park, spawn

CHILD = ("mail.child",)


def running(store: Store, held: Claimed, **overrides: Any) -> list[Claimed]:
    """What can be claimed of the children."""
    return claim(store, tasks=CHILD, **overrides)


def key(held: Claimed, path: str = "kids") -> str:
    return ChildrenLimit(held.job_id, 1, path).key


def test_at_most_so_many_of_a_group_run_at_once(store: Store) -> None:
    """F19: an end makes room for one more, whatever it was. Jobs of the task that belong to no group are not limited,
    and other groups have limits of their own."""
    held = begin(store)
    is_spawned(spawn(store, held, 7, limit=3))
    first = running(store, held)
    assert len(first) == 3
    assert running(store, held) == []
    finish(store, first[0])
    abort(store, first[1], "error", delay=1000.0)
    assert len(running(store, held)) == 2
    other = begin(store)
    is_spawned(spawn(store, other, 7, path="other", limit=2))
    assert len(running(store, other)) == 2
    alone = [enqueue(store, task="mail.child") for _ in range(5)]
    assert sorted(one.job_id for one in running(store, held)) == alone


def test_a_worker_that_died_makes_room(store: Store, clock: StoreClock) -> None:
    """F19: its children count until their lease has expired and they are taken back."""
    held = begin(store)
    is_spawned(spawn(store, held, 4, limit=2))
    assert len(running(store, held)) == 2
    clock.advance(LEASE + 1)
    store.lease_reap(100)
    assert len(running(store, held, limit=100)) == 2
    assert running(store, held) == []


def test_portions_share_one_limit(store: Store) -> None:
    """F19: also if the code of the second attempt has another one, and if the same portion is sent twice."""
    held = begin(store)
    first = store.ids_reserve(6)
    made = [new_job(store, id=first + n, task="mail.child") for n in range(6)]
    for portion, limit, closed in ((made[:3], 2, False), (made[:3], 2, False), (made[3:], 3, True)):
        is_spawned(spawn(store, held, 6, first_id=first, jobs=portion, total=6, closed=closed, limit=limit))
        assert store.limit_list(LimitFilter(keys=(key(held),)))[0].concurrency_max == limit
    assert len(running(store, held)) == 3


def test_a_task_that_has_another_limit_is_refused(store: Store, untouched: Untouched) -> None:
    """A job is under one limit besides that of its queue. Nothing is spawned."""
    store.limit_put(NewLimit(key="printer", rate=5, tasks=CHILD))
    held = begin(store)
    first = store.ids_reserve(2)
    made = [new_job(store, id=first + n, task="mail.child") for n in range(2)]
    with untouched():
        error = refused(spawn(store, held, 2, first_id=first, jobs=made, limit=1), InvalidInput, field="limit")
    assert "'mail.child', which is under the limit 'printer'" in str(error)
    is_spawned(spawn(store, held, 2, first_id=first, jobs=made))


def test_the_limit_of_the_queue_holds_too(store: Store) -> None:
    """F19, J12."""
    held = begin(store)
    store.limit_put(NewLimit(key="queue:slow", concurrency_max=2, queues=("slow",)))
    first = store.ids_reserve(4)
    made = [new_job(store, id=first + n, task="mail.child", queue="slow" if n < 3 else "fast") for n in range(4)]
    is_spawned(spawn(store, held, 4, first_id=first, jobs=made, limit=3))
    found = running(store, held, queues=("slow", "fast"))
    assert sorted(one.queue for one in found) == ["fast", "slow", "slow"]


def test_why_names_the_limit(store: Store) -> None:
    """J13, F19: for a child that waits, and for the parent."""
    held = begin(store)
    group = is_spawned(spawn(store, held, 3, limit=1))
    (first,) = running(store, held)
    assert first.job_id == group.first_id
    assert explain(store, group.first_id + 1) == (
        f"at most 1 children of step 'kids' of job {held.job_id} run at once, and 1 are running"
    )
    park(store, held, children())
    assert "for 3 of 3 children of step 'kids' (1 run, at most 1 at once)" in explain(store, held.job_id)


@pytest.mark.parametrize("how", ["succeeded", "cancelled"])
def test_the_limit_goes_when_all_children_have_ended(store: Store, how: str) -> None:
    """Nothing of it stays, so a database does not fill with limits. A dead child may be retried: the limit stays."""
    held = begin(store)
    is_spawned(spawn(store, held, 3, limit=2))
    first = running(store, held)
    store.limit_prune("", 100)
    for one in first:
        finish(store, one)
    (last,) = running(store, held)
    abort(store, last, "error", fatal=True) if how == "cancelled" else finish(store, last)
    if how == "cancelled":
        assert job(store, last.job_id).state == "quarantined"
        store.limit_prune("", 100)
        assert store.limit_list(LimitFilter(keys=(key(held),))) != []
        store.job_discard([last.job_id], "ann", "no ink")
    assert store.limit_prune("", 100).limits == 1
    assert [row.key for row in store.limit_list()] == [limit_of_child_task("mail.child")]


def test_the_limit_stays_while_the_group_grows(store: Store, clock: StoreClock) -> None:
    """Between two portions, all children that are there may have ended."""
    held = begin(store)
    first = store.ids_reserve(2)
    made = [new_job(store, id=first + n, task="mail.child") for n in range(2)]
    is_spawned(spawn(store, held, 2, first_id=first, jobs=made[:1], closed=False, limit=1))
    for one in running(store, held):
        finish(store, one)
    clock.advance(1)
    assert store.limit_prune("", 100).limits == 0
    is_spawned(spawn(store, held, 2, first_id=first, jobs=made[1:], limit=1))
    assert len(running(store, held)) == 1


def test_it_cannot_be_removed_while_children_wait(store: Store, clock: StoreClock, untouched: Untouched) -> None:
    """J12: those that are ready, and those that wait for their time, have only its key."""
    held = begin(store)
    first = store.ids_reserve(2)
    due = (clock.now(), clock.now() + timedelta(hours=1))
    made = [new_job(store, id=first + n, task="mail.child", due_at=at) for n, at in enumerate(due)]
    is_spawned(spawn(store, held, 2, first_id=first, jobs=made, limit=1))
    with untouched():
        refused(store.limit_remove(key(held), "ana"), InUse, entity="limit", jobs=2)
