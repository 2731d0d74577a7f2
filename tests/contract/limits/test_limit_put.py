"""limit_put, and what a claim makes of limits: never more than there is room for, and never less."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from threading import Barrier, Lock
from typing import Any

import pytest

from detent.errors import LeaseLost
from detent.model.limit_records import NewLimit
from detent.model.records import Claimed
from detent.store.contract import Store
from detent.testing.stores import StoreClock, another_store
from tests.contract.concurrent_callers import PATIENCE
from tests.contract.jobs.sample_jobs import LEASE, abort, claim, enqueue, finish
from tests.contract.refusals import refused

TASK, QUEUE = "mail.send", "mail"
ON_TASK = NewLimit(key="shop", concurrency_max=2, tasks=(TASK,))
ON_QUEUE = NewLimit(key="queue:mail", concurrency_max=2, queues=(QUEUE,))
THREADS, RACING_JOBS = 8, 48


def jobs(store: Store, count: int, **overrides: Any) -> list[int]:
    return [enqueue(store, queue=QUEUE, **overrides) for _ in range(count)]


def ids(claimed: list[Claimed]) -> list[int]:
    return [one.job_id for one in claimed]


@pytest.mark.parametrize("limit", [ON_TASK, ON_QUEUE])
def test_no_more_run_at_once_than_may(store: Store, limit: NewLimit) -> None:
    """J12: the others stay where they are, in order, until one has ended; no attempt is made at them."""
    store.limit_put(limit)
    made = jobs(store, 4)
    held = claim(store)
    assert ids(held) == made[:2]
    assert claim(store) == []
    assert [row and (row.state, row.attempt) for row in store.job_get(made[2:])] == [("pending", 0)] * 2
    finish(store, held[0])
    assert ids(claim(store)) == made[2:3]


def test_who_changed_the_bounds_is_on_record(store: Store) -> None:
    """E4, R1: with the new bounds; writing the same bounds again, as every start does, leaves no line."""
    store.limit_put(ON_QUEUE, "ana", "the provider asked for it")
    store.limit_put(ON_QUEUE, "ben")
    store.limit_pause(ON_QUEUE.key, "ana")
    store.limit_put(NewLimit(key=ON_QUEUE.key, rate=5.0, queues=(QUEUE,)), "ben")
    made, _, changed = store.transitions("limit", ON_QUEUE.key)
    assert (made.from_state, made.to_state, made.trigger) == (None, "closed", "create")
    assert (made.actor, made.reason) == ("ana", "the provider asked for it")
    assert made.metadata == '{"rate":null,"per":1.0,"burst":1.0,"concurrency_max":2}'
    assert (changed.from_state, changed.to_state, changed.trigger) == ("paused", "paused", "change")
    assert (changed.actor, changed.metadata) == ("ben", '{"rate":5.0,"per":1.0,"burst":1.0,"concurrency_max":null}')


def test_to_be_passed_over_costs_a_tenant_no_turn(store: Store) -> None:
    """J4, J12: a's turn goes to its next job that there is room for."""
    store.limit_put(NewLimit(key="shop", concurrency_max=1, tasks=(TASK,)))
    first, _, next_of_a = (enqueue(store, tenant="a", task=task) for task in (TASK, TASK, "pack"))
    b, next_of_b = (enqueue(store, tenant="b", task="pack") for _ in range(2))
    c, _ = (enqueue(store, tenant="c", task="pack") for _ in range(2))
    assert ids(claim(store, tasks=[TASK, "pack"], limit=5)) == [first, b, c, next_of_a, next_of_b]


@pytest.mark.parametrize("outcome", ["error", "released", "snoozed", "timed_out"])
def test_whatever_ends_an_attempt_makes_room(store: Store, outcome: str) -> None:
    store.limit_put(ON_TASK)
    made = jobs(store, 3)
    first, _ = claim(store)
    abort(store, first, outcome=outcome, delay=60)
    assert ids(claim(store)) == made[2:]


def test_a_holder_that_died_makes_room_when_its_lease_is_over(store: Store, clock: StoreClock) -> None:
    """J5, J12: what is lost does not count, so it cannot stand in its own way."""
    store.limit_put(NewLimit(key="shop", concurrency_max=1, tasks=(TASK,)))
    (made,) = jobs(store, 1)
    (dead,) = claim(store)
    clock.advance(LEASE + 1)
    assert claim(store) == []
    store.lease_reap(10)
    (again,) = claim(store)
    assert (again.job_id, again.attempt) == (made, 2)
    # The late finisher is refused and gives nothing back that is not its own.
    refused(finish(store, dead), LeaseLost)
    assert [row.running for row in store.limit_list()] == [1]


def test_every_limit_counts(store: Store) -> None:
    """A job is under the limit of its task and that of its queue; other queues go on."""
    store.limit_put(NewLimit(key="shop", concurrency_max=3, tasks=(TASK,)))
    store.limit_put(NewLimit(key="queue:mail", concurrency_max=1, queues=(QUEUE,)))
    mail = jobs(store, 2)
    other = [enqueue(store, queue="other") for _ in range(3)]
    assert sorted(ids(claim(store))) == sorted([mail[0], *other[:2]])
    assert claim(store) == []


def test_tasks_without_limits_go_on(store: Store) -> None:
    """What has no room costs the others nothing, whatever its rank, and keeps its own place."""
    store.limit_put(ON_TASK)
    urgent = jobs(store, 4, priority=9)
    plain = [enqueue(store, task="plain", queue=QUEUE) for _ in range(3)]
    tasks = [TASK, "plain"]
    assert ids(claim(store, tasks=tasks, limit=4)) == [*urgent[:2], *plain[:2]]
    assert ids(claim(store, tasks=tasks)) == plain[2:]


def test_tasks_may_share_one_limit(store: Store) -> None:
    """A key is for all that name it; put twice, it is for both."""
    store.limit_put(ON_TASK)
    store.limit_put(NewLimit(key="shop", concurrency_max=2, tasks=("other",)))
    jobs(store, 2)
    enqueue(store, task="other")
    assert len(claim(store, tasks=[TASK, "other"])) == 2


def test_tenants_still_take_turns(store: Store) -> None:
    """J4: a limit is shared out like everything else."""
    store.limit_put(ON_TASK)
    for tenant in ("ana", "ana", "ana", "bob"):
        enqueue(store, tenant=tenant)
    assert [one.tenant for one in claim(store)] == ["ana", "bob"]


def test_what_runs_already_counts(store: Store) -> None:
    jobs(store, 4)
    claim(store, limit=2)
    store.limit_put(ON_TASK)
    assert claim(store) == []


def test_a_limit_may_be_lifted(store: Store) -> None:
    store.limit_put(ON_TASK)
    jobs(store, 4)
    store.limit_put(NewLimit(key="shop"))
    assert len(claim(store)) == 4


def test_a_key_is_given_back_only_by_what_was_claimed(store: Store) -> None:
    """J3: a job that a limit kept back is still the pending one."""
    store.limit_put(NewLimit(key="shop", concurrency_max=1, tasks=(TASK,)))
    made = [enqueue(store, key=f"k{n}", unique_pending=True) for n in range(2)]
    (first,) = claim(store)
    assert first.job_id == made[0]
    enqueue(store, key="k0", unique_pending=True)


def test_a_rate_lets_a_burst_through_and_then_its_share(store: Store, clock: StoreClock) -> None:
    """J12: two a second, three at a time, whoever claims; what nobody took is kept up to the burst."""
    store.limit_put(NewLimit(key="shop", rate=2, burst=3, tasks=(TASK,)))
    jobs(store, 20)
    assert len(claim(store)) == 3
    assert claim(store, worker="bob") == []
    clock.advance(0.5)
    assert len(claim(store, worker="bob")) == 1
    clock.advance(1)
    assert len(claim(store, limit=1)) == 1
    assert len(claim(store, worker="bob")) == 1
    assert claim(store) == []
    clock.advance(25)
    assert len(claim(store)) == 3


def test_a_rate_per_minute(store: Store, clock: StoreClock) -> None:
    store.limit_put(NewLimit(key="shop", rate=1, per=60, tasks=(TASK,)))
    jobs(store, 3)
    assert len(claim(store)) == 1
    clock.advance(59)
    assert claim(store) == []
    clock.advance(1)
    assert len(claim(store)) == 1


def test_put_again_it_keeps_what_is_left(store: Store) -> None:
    """Workers say their limits when they start; a start is no gift of tokens."""
    limit = NewLimit(key="shop", rate=1, burst=3, tasks=(TASK,))
    store.limit_put(limit)
    jobs(store, 5)
    assert len(claim(store)) == 3
    store.limit_put(limit)
    assert claim(store) == []


def test_many_who_claim_at_once_never_exceed_it(store: Store, store_url: str) -> None:
    """J12: eight threads that claim and finish: never more than two at once, and nothing is left over."""
    store.limit_put(ON_TASK)
    jobs(store, RACING_JOBS)
    together, lock = Barrier(THREADS), Lock()
    running: set[int] = set()
    most = [0]
    left = [RACING_JOBS]

    def work(_: int) -> None:
        with closing(another_store(store_url)) as mine:
            together.wait(PATIENCE)
            while left[0] > 0:
                held = claim(mine, limit=3)
                with lock:
                    running.update(ids(held))
                    most[0] = max(most[0], len(running))
                with lock:
                    running.difference_update(ids(held))
                for one in held:
                    finish(mine, one)
                with lock:
                    left[0] -= len(held)

    with ThreadPoolExecutor(THREADS) as workers:
        list(workers.map(work, range(THREADS)))
    assert (left[0], most[0] <= 2) == (0, True)
    assert [row.running for row in store.limit_list()] == [0]
