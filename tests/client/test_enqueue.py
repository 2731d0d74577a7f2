"""Enqueue: what is asked for is what stands in the record, once."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from detent import Job
from detent.client.engine import Engine
from detent.errors import IdConflict, InvalidInput, KeyConflict, OutcomeUnknown
from detent.testing.stores import START, plain_connection
from tests.app.shop import Shop, open_shop

DEADLINE = 60.0


def test_one(shop: Shop) -> None:
    job = shop.welcome.enqueue(user_id=7)
    assert job.created
    assert (job.refresh().state, job.task, job.attempt, job.payload) == ("pending", "welcome", 0, {"user_id": 7})
    assert (job.row.queue, job.tenant, job.row.priority, job.metadata) == ("mail", "", 0, {})
    assert (job.row.created_at, job.due_at, job.row.attempts_max) == (START, START, 4)


def test_everything_that_can_be_said(shop: Shop) -> None:
    """J2"""
    berlin = timezone(timedelta(hours=2))
    job = shop.app.enqueue(
        shop.welcome.call(user_id=7, lang="de"),
        key="welcome:7",
        due_at=datetime(2026, 6, 1, 12, tzinfo=berlin),
        expires_at=datetime(2026, 6, 2, tzinfo=UTC),
        priority=-3,
        queue="slow",
        tenant="acme",
        metadata={"from": "käse", "deep": [1, {"a": None}]},
        correlation_id="order-17",
        traceparent="00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    )
    row = job.refresh().row
    assert (row.due_at, row.expires_at) == (datetime(2026, 6, 1, 10, tzinfo=UTC), datetime(2026, 6, 2, tzinfo=UTC))
    assert (row.priority, row.queue, row.tenant, row.correlation_id) == (-3, "slow", "acme", "order-17")
    assert row.traceparent == "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    assert job.metadata == {"from": "käse", "deep": [1, {"a": None}]}
    assert job.payload == {"user_id": 7, "lang": "de"}


def test_a_time_already_past_is_now(shop: Shop) -> None:
    assert shop.app.enqueue(shop.welcome.call(7), due_at=START - timedelta(days=1)).refresh().due_at == START


def test_the_ends_of_time_can_be_said(shop: Shop) -> None:
    last = datetime.max.replace(tzinfo=UTC)
    job = shop.app.enqueue(shop.welcome.call(7), due_at=last, expires_at=last)
    assert (shop.app.jobs.get(job.id).row.due_at, job.refresh().row.expires_at) == (last, last)


def test_many_come_in_order(shop: Shop) -> None:
    """FIFO: ids ascend as the calls came, and so they are carried out."""
    jobs = shop.app.enqueue_many(shop.welcome.call(user_id=n) for n in range(50))
    assert [job.refresh().payload["user_id"] for job in jobs] == list(range(50))
    assert [job.id for job in jobs] == sorted(job.id for job in jobs)
    assert shop.work() == jobs


def test_many_of_several_tasks_with_one_set_of_options(shop: Shop) -> None:
    calls: list[Any] = [shop.welcome.call(1), shop.later.call([1, 2]), shop.sync.call("a")]
    jobs = shop.app.enqueue_many(calls, tenant="acme", priority=5)
    assert [(job.refresh().task, job.tenant, job.row.priority) for job in jobs] == [
        ("welcome", "acme", 5),
        ("later", "acme", 5),
        ("sync", "acme", 5),
    ]


def test_none_at_all_is_nothing(shop: Shop) -> None:
    with shop.untouched():
        assert shop.app.enqueue_many([]) == []


def test_many_are_all_or_nothing(shop: Shop) -> None:
    """One bad call among them, or calls that break off: nothing is written."""
    calls: list[Any] = [shop.welcome.call(1), shop.welcome.call(2), "not a call"]

    def break_off() -> Any:
        yield shop.welcome.call(1)
        raise RuntimeError("no more users")

    with shop.untouched():
        with pytest.raises(InvalidInput, match=r"call: found a value of type str; allowed: task.call\(...\)"):
            shop.app.enqueue_many(calls)
        with pytest.raises(RuntimeError, match="no more users"):
            shop.app.enqueue_many(break_off())


def test_many_are_refused_together_by_the_database(shop: Shop) -> None:
    """One id that belongs to another job, among fresh ones: not one of them is written."""
    taken = shop.welcome.enqueue(user_id=1)
    other = Engine(shop.app.settings, shop.clock, shop.store)
    other.prepared._take = lambda count: [10**9, taken.id, *range(10**9 + 1, 10**9 + count - 1)]
    with shop.untouched(), pytest.raises(IdConflict, match=f"id {taken.id} belongs to another job"):
        other.client.enqueue_many(shop.welcome.call(n) for n in range(5))


def test_many_have_a_limit(shop: Shop) -> None:
    """G6: even where the calls never end."""
    app = shop.second(enqueue_many_max=10)
    shop.use(app)

    def for_ever() -> Any:
        while True:
            yield shop.welcome.call(1)

    with shop.untouched(), pytest.raises(InvalidInput, match="calls: found more than 10; allowed: at most 10 calls"):
        app.enqueue_many(for_ever())


# -- keys -----------------------------------------------------------------------------------------------------


def test_the_same_key_answers_the_same_job(shop: Shop) -> None:
    """J3: in whatever state it is."""
    first = shop.app.enqueue(shop.welcome.call(7), key="welcome:7")
    again = shop.app.enqueue(shop.welcome.call(user_id=7), key="welcome:7")
    assert (first.created, again.created, first == again) == (True, False, True)
    shop.work()
    late = shop.app.enqueue(shop.welcome.call(7), key="welcome:7")
    assert (late, late.created, late.refresh().result) == (first, False, "sent to 7")


def test_another_payload_or_task_is_a_conflict_that_names_the_first(shop: Shop) -> None:
    """J3"""
    first = shop.app.enqueue(shop.welcome.call(7), key="k")
    other: list[Any] = [shop.welcome.call(8), shop.later.call([7])]
    for call in other:
        with shop.untouched(), pytest.raises(KeyConflict) as conflict:
            shop.app.enqueue(call, key="k")
        assert (conflict.value.key, conflict.value.job_id) == ("k", first.id)
        assert str(first.id) in str(conflict.value)


def test_keys_belong_to_their_tenant(shop: Shop) -> None:
    first = shop.app.enqueue(shop.welcome.call(7), key="k", tenant="acme")
    second = shop.app.enqueue(shop.welcome.call(8), key="k", tenant="bolt")
    assert (first.created, second.created) == (True, True)


def test_a_key_can_expire(shop: Shop) -> None:
    """J3"""
    first = shop.app.enqueue(shop.welcome.call(7), key="k", key_ttl=60)
    shop.clock.advance(59)
    assert shop.app.enqueue(shop.welcome.call(7), key="k", key_ttl=60) == first
    shop.clock.advance(2)
    second = shop.app.enqueue(shop.welcome.call(8), key="k")
    assert second.created
    assert second != first


def test_unique_while_pending(shop: Shop) -> None:
    """J12: the same call is not queued twice; once it runs, it may be."""
    first = shop.sync.enqueue(source="a")
    assert shop.sync.enqueue(source="a") == first
    assert shop.sync.enqueue(source="b") != first
    shop.work()
    assert shop.sync.enqueue(source="a") != first


def test_callers_that_race_for_a_key_get_one_job(shop: Shop) -> None:
    """J3: through the writer, from many threads."""
    with ThreadPoolExecutor(max_workers=16) as crowd:
        jobs = list(crowd.map(lambda _: shop.app.enqueue(shop.welcome.call(7), key="k"), range(64)))
    assert len(set(jobs)) == 1
    assert sum(job.created for job in jobs) == 1


def test_a_strangers_open_transaction_holds_up_its_own_key_only(postgres_store_url: str) -> None:
    """Keyed enqueues wait for whoever has the key in hand; the plain ones go by."""
    with open_shop(postgres_store_url) as shop, ThreadPoolExecutor(max_workers=1) as crowd:
        shop.welcome.enqueue(user_id=0)
        with closing(plain_connection(shop.url)) as stranger:
            theirs = shop.app.using(stranger).enqueue(shop.welcome.call(7), key="k")
            begun = threading.Event()

            def enqueue() -> Job[str]:
                begun.set()
                return shop.app.enqueue(shop.welcome.call(7), key="k")

            mine = crowd.submit(enqueue)
            assert begun.wait(DEADLINE)
            assert shop.welcome.enqueue(user_id=1).created
            stranger.rollback()
        job = mine.result(DEADLINE)
        assert job.created
        assert job != theirs


# -- ids ------------------------------------------------------------------------------------------------------


def test_a_lost_answer_is_not_sent_as_a_second_job(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """J2, C6: the id was there before the insert; the handle says that this request made the job."""
    together, lost = shop.store.together, [True]

    def lose_one_answer(work: Any) -> Any:
        done = together(work)
        if lost and lost.pop():
            raise OutcomeUnknown(shop.store.name, "the cable was pulled")
        return done

    monkeypatch.setattr(shop.store, "together", lose_one_answer)
    keyed = shop.app.enqueue(shop.welcome.call(7), key="k")
    lost.append(True)
    plain = shop.welcome.enqueue(user_id=8)
    assert (keyed.created, plain.created, len(shop.app.jobs.list())) == (True, True, 2)


def test_two_applications_never_use_the_same_id(shop: Shop) -> None:
    with closing(shop.second()) as other:
        ids = [
            app.enqueue(shop.welcome.call(n)).id  # taken in turns, from blocks of their own
            for n in range(10)
            for app in (shop.app, other)
        ]
    assert len(set(ids)) == 20


def test_enqueue_by_name(shop: Shop) -> None:
    job = shop.app.enqueue_named("welcome", '{"user_id": 7}', tenant="acme")
    assert (job.refresh().payload, job.tenant) == ({"user_id": 7}, "acme")
    shop.work()
    assert job.refresh().result == "sent to 7"
