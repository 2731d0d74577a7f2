"""Jobs that cost more than one token, and limit_charge: what an attempt has cost in the end."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from threading import Barrier
from typing import Any

import pytest

from detent.errors import DetentError, LeaseLost
from detent.model.limit_records import Charge, Charged, LimitRow, NewLimit
from detent.model.records import Claimed, Commit
from detent.store.contract import Store
from detent.testing.stores import StoreClock, another_store
from tests.contract.concurrent_callers import PATIENCE
from tests.contract.jobs.sample_jobs import LEASE, abort, claim, claim_one, enqueue, finish, job, new_job
from tests.contract.refusals import Untouched, refused

TASK = "mail.send"
THREADS = 4


@pytest.fixture(name="shop")
def with_a_budget(store: Store) -> Store:
    """Ten tokens, one comes back a second."""
    store.limit_put(NewLimit(key="shop", rate=1.0, burst=10.0, tasks=(TASK,)))
    return store


def the_limit(store: Store, key: str = "shop") -> LimitRow:
    (row,) = [one for one in store.limit_list() if one.key == key]
    return row


def tokens(store: Store, key: str = "shop") -> float:
    return round(the_limit(store, key).tokens, 3)


def ids(claimed: list[Claimed]) -> list[int]:
    return [one.job_id for one in claimed]


def charge(store: Store, held: Claimed, cost: float) -> Charged | DetentError:
    (answer,) = store.limit_charge([Charge(held.job_id, held.attempt, cost)])
    return answer


def test_a_claim_takes_what_its_jobs_cost(shop: Store, clock: StoreClock) -> None:
    """B5: the budget lets begin what it has the tokens for, over all claims together."""
    made = [enqueue(shop, cost=4) for _ in range(3)]
    assert [job(shop, one).cost for one in made] == [4, 4, 4]
    assert ids(claim(shop)) == made[:2]
    assert tokens(shop) == 2
    clock.advance(1.9)
    assert claim(shop, worker="bob") == []
    clock.advance(0.1)
    assert ids(claim(shop, worker="bob")) == made[2:]


def test_tokens_are_saved_up_for_the_next_in_line(shop: Store, clock: StoreClock) -> None:
    """J4: a job that costs much does not wait for ever for others that cost little."""
    held = [enqueue(shop, cost=8), enqueue(shop, cost=5), enqueue(shop), enqueue(shop)]
    assert ids(claim(shop)) == held[:1]
    assert claim(shop) == []
    clock.advance(3)
    assert ids(claim(shop)) == held[1:2]
    clock.advance(2)
    assert ids(claim(shop)) == held[2:]


def test_whoever_is_under_another_limit_passes(shop: Store) -> None:
    shop.limit_put(NewLimit(key="other", rate=1.0, burst=1.0, tasks=("other",)))
    first, waits, other = enqueue(shop, cost=8), enqueue(shop, cost=8), enqueue(shop, task="other")
    assert ids(claim(shop, tasks=[TASK, "other"])) == [first, other]
    assert job(shop, waits).state == "pending"


def test_each_key_has_a_budget_of_its_own(shop: Store) -> None:
    made = [enqueue(shop, cost=6, limit_key=f"shop:{key}") for key in "aab"]
    assert ids(claim(shop)) == [made[0], made[2]]
    assert (tokens(shop, "shop:a"), tokens(shop, "shop:b"), tokens(shop)) == (4, 4, 10)


def test_a_queue_counts_jobs_whatever_they_cost(shop: Store) -> None:
    """So a shop that counts requests and points has two limits: one on the queue, one on the task."""
    shop.limit_put(NewLimit(key="queue:default", rate=1.0, burst=3.0, queues=("default",)))
    made = [enqueue(shop, cost=2) for _ in range(4)]
    assert ids(claim(shop)) == made[:3]
    assert (tokens(shop), tokens(shop, "queue:default")) == (4, 0)


def test_one_limit_on_task_and_queue_takes_once(shop: Store) -> None:
    shop.limit_put(NewLimit(key="shop", rate=1.0, burst=10.0, tasks=(TASK,), queues=("default",)))
    made = [enqueue(shop, cost=7), enqueue(shop, task="other"), enqueue(shop, cost=3)]
    assert ids(claim(shop, tasks=[TASK, "other"])) == made[:2]
    assert tokens(shop) == 2


def test_as_many_at_once_as_may_run(store: Store) -> None:
    store.limit_put(NewLimit(key="shop", rate=1.0, burst=100.0, concurrency_max=2, tasks=(TASK,)))
    made = [enqueue(store, cost=10) for _ in range(3)]
    assert ids(claim(store)) == made[:2]
    assert tokens(store) == 80


def test_a_cost_without_a_rate_is_not_asked_for(store: Store) -> None:
    store.limit_put(NewLimit(key="shop", concurrency_max=2, tasks=(TASK,)))
    made = [enqueue(store, cost=50) for _ in range(3)]
    held = claim(store)
    assert ids(held) == made[:2]
    assert charge(store, held[0], 7) == Charged(made[0], 1, None)


def test_a_job_that_costs_more_than_the_bucket_holds_begins_when_it_is_full(shop: Store, clock: StoreClock) -> None:
    """The bucket may have become smaller since: such a job waits, and not for ever."""
    first, large, last = enqueue(shop), enqueue(shop, cost=15), enqueue(shop)
    assert ids(claim(shop)) == [first]
    clock.advance(1)
    assert ids(claim(shop)) == [large]
    assert tokens(shop) == -5
    clock.advance(5)
    assert claim(shop) == []
    clock.advance(1)
    assert ids(claim(shop)) == [last]


def test_every_attempt_takes_its_cost(shop: Store) -> None:
    enqueue(shop, cost=4)
    abort(shop, claim_one(shop))
    abort(shop, claim_one(shop))
    assert tokens(shop) == 2
    assert claim(shop) == []


def test_what_was_taken_too_much_goes_back(shop: Store) -> None:
    """B5: the answer says what the call has really cost."""
    made = [enqueue(shop, cost=8) for _ in range(2)]
    held = claim_one(shop)
    assert charge(shop, held, 1.5) == Charged(made[0], 1, 8.5)
    assert ids(claim(shop)) == made[1:]


def test_what_was_taken_too_little_is_owed(shop: Store, clock: StoreClock) -> None:
    """B5: nobody begins until the bucket has made up for it."""
    first, second = enqueue(shop), enqueue(shop)
    held = claim_one(shop, limit=1)
    assert charge(shop, held, 12) == Charged(first, 1, -2)
    assert the_limit(shop).state(shop.now()) == "spent"
    finish(shop, held)
    clock.advance(2.5)
    assert claim(shop) == []
    clock.advance(0.5)
    assert ids(claim(shop)) == [second]


def test_the_last_word_counts(shop: Store) -> None:
    """So it may be said again by whoever does not know whether it was heard."""
    enqueue(shop, cost=4)
    held = claim_one(shop)
    for cost in (6, 6, 5):
        charge(shop, held, cost)
    assert tokens(shop) == 5
    both = [Charge(held.job_id, held.attempt, 9), Charge(held.job_id, held.attempt, 2)]
    assert [one.tokens for one in shop.limit_charge(both) if isinstance(one, Charged)] == [1, 8]
    assert shop.limit_charge([]) == []


def test_no_more_goes_back_than_the_bucket_holds(shop: Store, clock: StoreClock) -> None:
    enqueue(shop, cost=4)
    held = claim_one(shop)
    clock.advance(20)
    assert charge(shop, held, 0) == Charged(held.job_id, 1, 10)


def test_a_key_of_its_own_is_charged(shop: Store) -> None:
    enqueue(shop, cost=4, limit_key="shop:a")
    held = claim_one(shop)
    assert charge(shop, held, 6) == Charged(held.job_id, 1, 4)
    assert (tokens(shop, "shop:a"), tokens(shop)) == (4, 10)


def test_who_is_not_the_holder_charges_nothing(shop: Store, clock: StoreClock, untouched: Untouched) -> None:
    """C4: each is refused, and the budget stays as it is."""
    enqueue(shop, cost=2)
    lost = claim_one(shop)
    clock.advance(LEASE)
    with untouched():
        refused(charge(shop, lost, 9), LeaseLost, found="its lease has expired")
    shop.lease_reap(10)
    again = claim_one(shop)
    with untouched():
        refused(charge(shop, lost, 9), LeaseLost, found="attempt 2 is current")
        (answer,) = shop.limit_charge([Charge(again.job_id + 1000, 1, 9)])
        refused(answer, LeaseLost, found="no such job")
    finish(shop, again)
    with untouched():
        refused(charge(shop, again, 9), LeaseLost, found="the job is succeeded")


def test_what_ran_before_the_limit_was_made_has_taken_nothing(store: Store) -> None:
    enqueue(store)
    held = claim_one(store)
    store.limit_put(NewLimit(key="shop", rate=1.0, burst=10.0, tasks=(TASK,)))
    assert charge(store, held, 3) == Charged(held.job_id, 1, 7)
    store.limit_put(NewLimit(key="shop", rate=1.0, burst=10.0, tasks=(TASK,)))
    assert charge(store, held, 4) == Charged(held.job_id, 1, 6)


def test_a_job_without_a_limit_is_charged_nothing(store: Store, untouched: Untouched) -> None:
    enqueue(store, cost=3)
    held = claim_one(store)
    with untouched():
        assert charge(store, held, 3) == Charged(held.job_id, 1, None)


@pytest.mark.parametrize("many", [1, 3])
def test_the_cost_comes_in_by_every_way(shop: Store, many: int) -> None:
    """One, many alike, some with a cost and some without, under keys, and as intents of a commit."""
    alike = [new_job(shop, cost=2) for _ in range(many)]
    mixed = [new_job(shop, cost=cost, key=f"k{cost}") for cost in (None, 1, 3)]
    for items in (alike, mixed):
        shop.job_enqueue(items)
        rows: list[Any] = shop.job_get([item.id for item in items])
        assert [row.cost for row in rows] == [item.cost for item in items]
    held = claim_one(shop, limit=1)
    intent = new_job(shop, cost=5, key="intent", group=0)
    shop.job_commit(Commit(job_id=held.job_id, attempt=held.attempt, intents=(intent,)))
    assert job(shop, intent.id).cost == 5


def test_a_cost_below_one_is_refused_by_the_database(shop: Store, untouched: Untouched) -> None:
    free = new_job(shop, cost=0)
    with untouched(), pytest.raises(DetentError):
        shop.job_enqueue([free])


def test_racers_take_no_more_than_there_is(shop: Store, store_url: str, clock: StoreClock) -> None:
    """B5: the limiter holds over all workers together; charges and claims at once lose nothing."""
    made = [enqueue(shop, cost=2) for _ in range(THREADS * 3)]
    line = Barrier(THREADS)

    def work(number: int) -> list[Claimed]:
        with closing(another_store(store_url, clock)) as store:
            line.wait(PATIENCE)
            held = [*claim(store, worker=f"w{number}", limit=1), *claim(store, worker=f"w{number}", limit=1)]
            for one in held:
                charge(store, one, 3)
                charge(store, one, 2)
            return held

    with ThreadPoolExecutor(THREADS) as pool:
        held = [one for some in pool.map(work, range(THREADS)) for one in some]
    assert sorted(ids(held)) == made[: len(held)]
    assert len(held) >= 3
    assert tokens(shop) == 10 - 2 * len(held)
