"""In which order children of a group are locked, and the group."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import pytest

from detent.model.records import Abort, Claimed, Finish
from detent.model.workflow_records import Park
from detent.store.contract import Store, Verbs
from detent.store.open import open_store
from detent.testing.stores import plain_connection
from tests.contract.jobs.sample_jobs import abort, claim, claim_one, commit
from tests.contract.workflows.sample_workflows import begin, is_spawned, signal, spawn
from tests.deadlines import scaled, until
from tests.store.postgres.connections import run_sql

_WAITS = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
_HOLD = "SELECT (detent.job_lock(%s)).id"
CHILD = ("mail.child",)


class Group:
    """Children of one workflow: the first and the last, and some between them that nobody acts on."""

    def __init__(self, store: Store, between: int = 1) -> None:
        self.store = store
        self.parent = begin(store)
        self.first = is_spawned(spawn(store, self.parent, between + 2)).first_id
        self.last = self.first + between + 1
        self.all = list(range(self.first, self.last + 1))
        self.held: dict[int, Claimed] = {}

    def run(self, *ids: int) -> list[Claimed]:
        """Claim these children, and give the others back."""
        for one in claim(self.store, tasks=CHILD):
            self.held[one.job_id] = one
        for job_id in self.held.keys() - set(ids):
            abort(self.store, self.held.pop(job_id), "released")
        return [self.held[job_id] for job_id in ids]

    def run_all(self) -> list[Claimed]:
        return self.run(*self.all)

    def die(self) -> None:
        """Bring the first and the last into quarantine."""
        for one in self.run(self.first, self.last):
            abort(self.store, one, "error", fatal=True)


Act = Callable[[Verbs], Any]


def cancel(group: Group) -> tuple[Act, Act]:
    _, last = group.run(group.first + 1, group.last)
    ids = [group.first, group.last]
    return (lambda verbs: verbs.job_cancel(ids, "bob")), (lambda verbs: verbs.job_finish([finish(last)], "ana"))


def cancel_by_the_tree(group: Group) -> tuple[Act, Act]:
    group.store.job_cancel([group.parent.job_id], "bob")
    return (lambda verbs: verbs.tree_cancel_step(100)), (lambda verbs: verbs.job_cancel([group.last], "eve"))


def retry(group: Group) -> tuple[Act, Act]:
    group.die()
    ids = [group.first, group.last]
    return (lambda verbs: verbs.job_retry(ids, "bob")), (lambda verbs: verbs.job_discard([group.last], "eve"))


def discard(group: Group) -> tuple[Act, Act]:
    group.die()
    ids = [group.first, group.last]
    return (lambda verbs: verbs.job_discard(ids, "bob")), (lambda verbs: verbs.job_retry([group.last], "eve"))


def end_without_success(group: Group) -> tuple[Act, Act]:
    ends = [Abort(job_id=one.job_id, attempt=one.attempt, outcome="error", fatal=True) for one in both(group)]
    return (lambda verbs: verbs.job_abort(ends, "ana")), step_of_a_tree(group)


def end_with_success(group: Group) -> tuple[Act, Act]:
    """The start of one of them is known, that of the other is not."""
    first, last = both(group)
    ends = [finish(first), Finish(last.job_id, last.attempt, begun_after=0.5)]
    return (lambda verbs: verbs.job_finish(ends, "ana")), step_of_a_tree(group)


def end_another_attempt_with_success(group: Group) -> tuple[Act, Act]:
    abort(group.store, claim_one(group.store, tasks=CHILD, limit=1), "error")
    ends = [finish(one) for one in both(group)]
    return (lambda verbs: verbs.job_finish(ends, "ana")), step_of_a_tree(group)


def park(group: Group) -> tuple[Act, Act]:
    """A cancel was requested: they end as cancelled."""
    waits = both(group)
    group.store.job_cancel([one.job_id for one in waits], "bob")
    parks = [
        Park(job_id=one.job_id, attempt=one.attempt, version=1, generation=1, on=(signal(),), parked_for="a test")
        for one in waits
    ]
    return (lambda verbs: verbs.workflow_park(parks, "ana")), step_of_a_tree(group)


def recover(group: Group) -> tuple[Act, Act]:
    for one in group.run_all():
        group.store.job_commit(commit(one))
    return (lambda verbs: verbs.job_recover(group.all)), (
        lambda verbs: verbs.job_finish([finish(group.held[group.last])], "ana")
    )


def both(group: Group) -> list[Claimed]:
    return group.run(group.first, group.last)


def finish(held: Claimed) -> Finish:
    return Finish(held.job_id, held.attempt)


def step_of_a_tree(group: Group) -> Act:
    """What `tree_cancel_step` does after it has locked those that run: cancel one that does not."""
    return lambda verbs: verbs.job_cancel([group.first + 1], "eve")


@pytest.fixture
def store(postgres_store_url: str) -> Iterator[Store]:
    with closing(open_store(postgres_store_url)) as store:
        yield store


@pytest.mark.parametrize(
    "verb",
    [
        cancel,
        cancel_by_the_tree,
        retry,
        discard,
        end_without_success,
        end_with_success,
        end_another_attempt_with_success,
        park,
        recover,
    ],
)
def test_all_children_are_locked_before_their_group(
    store: Store, postgres_store_url: str, verb: Callable[[Group], tuple[Act, Act]]
) -> None:
    """R4: whoever ends a child has locked it and then counts it in its group. A verb that acted on several children
    held the group after the first of them, and waited for the next: a deadlock."""
    group = Group(store, between=10)
    act, act_on_last = verb(group)
    with (
        closing(plain_connection(postgres_store_url)) as mine,
        closing(plain_connection(postgres_store_url)) as other,
        ThreadPoolExecutor(1) as thread,
    ):
        other.execute(_HOLD, (group.last,))
        work = thread.submit(lambda: (act(store.on(mine)), mine.commit()))
        until(lambda: run_sql(postgres_store_url, _WAITS))
        act_on_last(store.on(other))
        other.commit()
        work.result(scaled(60))
