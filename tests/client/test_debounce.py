"""`enqueue(..., key=…, debounce=seconds)`: of many calls in a row, the last one runs, once they have stopped."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import timedelta
from typing import Any

import pytest

from detent import Context
from detent.client.job import Job
from detent.client.task import PlainTask
from detent.errors import InvalidInput, WrongPlace
from detent.testing.harness import Harness
from detent.testing.stores import plain_connection
from tests.contract.jobs.sample_jobs import claim

Save = PlainTask[[str], str]


@pytest.fixture
def detent(store_url: str) -> Iterator[Harness]:
    with closing(Harness(store_url)) as harness:
        yield harness


@pytest.fixture
def save(detent: Harness) -> Save:
    @detent.app.task(name="mail.send")
    def save(ctx: Context, text: str) -> str:
        return f"saved {text}"

    return save


def send(detent: Harness, save: Save, text: str, key: str = "note:7", **more: Any) -> Job[str]:
    return detent.app.enqueue(save.call(text), key=key, debounce=10, **more)


def test_the_last_call_runs_when_calls_have_stopped(detent: Harness, save: Save) -> None:
    jobs = []
    for text in ("a", "ab", "abc"):
        jobs.append(send(detent, save, text))
        detent.clock.advance(9)
        assert detent.work() == []
    assert [job.refresh().state for job in jobs] == ["cancelled", "cancelled", "pending"]
    detent.clock.advance(1)
    assert detent.work() == [jobs[2]]
    assert jobs[2].refresh().result == "saved abc"
    assert detent.app.record.verify() == []


def test_what_was_replaced_is_on_record(detent: Harness, save: Save) -> None:
    first, second = send(detent, save, "a"), send(detent, save, "a")
    assert first.id != second.id
    assert second.refresh().row.due_at == detent.clock.now() + timedelta(seconds=10)
    line = first.history()[-1]
    assert (line.to_state, line.actor, line.reason) == ("cancelled", "debounce", f"replaced by job {second.id}")


def test_a_job_that_has_begun_is_left_alone(detent: Harness, save: Save) -> None:
    first = send(detent, save, "a")
    detent.clock.advance(10)
    detent.store.job_promote(10)
    (claimed,) = claim(detent.store)
    second = send(detent, save, "b")
    assert (claimed.job_id, first.refresh().state, first.row.cancel_requested_at) == (first.id, "running", None)
    assert second.refresh().state == "pending"
    third = send(detent, save, "c")
    assert (second.refresh().state, third.refresh().state) == ("cancelled", "pending")


def test_each_key_tenant_and_task_stands_for_itself(detent: Harness, save: Save) -> None:
    @detent.app.task(name="other")
    def other(ctx: Context, text: str) -> None: ...

    long = "k" * 500
    jobs: list[Job[Any]] = [
        send(detent, save, "a"),
        send(detent, save, "a", key="note:8"),
        send(detent, save, "a", tenant="acme"),
        send(detent, save, "a", key=long),
        detent.app.enqueue(other.call("a"), key="note:7", debounce=10),
        detent.app.enqueue(save.call("a"), key="note:7"),
    ]
    assert [job.refresh().state for job in jobs] == ["pending"] * 6
    send(detent, save, "b", key=long)
    assert jobs[3].refresh().state == "cancelled"


def test_inside_a_transaction_of_the_callers(detent: Harness, save: Save) -> None:
    first = send(detent, save, "a")
    with closing(plain_connection(detent.url)) as connection:
        detent.app.using(connection).enqueue(save.call("b"), key="note:7", debounce=10)
        connection.rollback()
        assert first.refresh().state == "pending"
        second = detent.app.using(connection).enqueue(save.call("b"), key="note:7", debounce=10)
        connection.commit()
    assert (first.refresh().state, second.refresh().state) == ("cancelled", "pending")


def test_from_a_coroutine(detent: Harness, save: Save) -> None:
    async def twice() -> list[str]:
        jobs = [await detent.app.aio.enqueue(save.call(text), key="note:7", debounce=10) for text in "ab"]
        return [(await job.refresh()).state for job in jobs]

    assert asyncio.run(twice()) == ["cancelled", "pending"]


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ({"debounce": 10}, "without a key"),
        ({"debounce": 0, "key": "a"}, "0"),
        ({"debounce": True, "key": "a"}, "True"),
        ({"debounce": 10, "key": "detent:a"}, "detent:a"),
        ({"debounce": 10, "key": "a", "key_ttl": 5}, "key_ttl"),
    ],
)
def test_what_does_not_go_together_is_refused(detent: Harness, save: Save, options: dict[str, Any], found: str) -> None:
    with pytest.raises(InvalidInput, match=found):
        detent.app.enqueue(save.call("a"), **options)
    with pytest.raises(InvalidInput, match="due_at"):
        send(detent, save, "a", due_at=detent.clock.now())
    assert detent.app.jobs.list() == []


def test_a_race_of_callers_and_claims(detent: Harness, save: Save) -> None:
    """Whatever comes first: no running job is asked to stop, one job waits at the end, and the record is in order."""

    def call(n: int) -> int:
        return send(detent, save, str(n)).id

    def take(_: int) -> int:
        detent.clock.advance(10)
        detent.store.job_promote(10)
        return len(claim(detent.store))

    with ThreadPoolExecutor(4) as pool:
        asked = [pool.submit(take if n % 3 == 2 else call, n) for n in range(60)]
        for one in asked:
            one.result()
    last = call(60)
    rows = detent.app.jobs.list(limit=1000)
    assert len(rows) == 41
    assert [job.id for job in rows if job.state == "pending"] == [last]
    assert all(job.row.cancel_requested_at is None for job in rows if job.state == "running")
    assert detent.app.record.verify() == []


def test_many_callers_at_once_are_all_accepted(detent: Harness, save: Save) -> None:
    """Callers that raced for the key gave up after ten rounds, with KeyConflict."""

    def calls(n: int) -> list[int]:
        with closing(plain_connection(detent.url)) as connection:
            made = []
            for m in range(30):
                made.append(detent.app.using(connection).enqueue(save.call(f"{n}:{m}"), key="note:7", debounce=10).id)
                connection.commit()
            return made

    with ThreadPoolExecutor(8) as pool:
        jobs = [job for made in pool.map(calls, range(8)) for job in made]
    assert len(set(jobs)) == 240
    assert len(detent.app.jobs.list(state="pending")) == 1
    assert detent.app.record.verify() == []


def test_not_on_an_async_connection_of_the_callers(postgres_store_url: str) -> None:
    import psycopg

    async def refused() -> None:
        async with await psycopg.AsyncConnection.connect(postgres_store_url) as connection:
            await harness.app.aio.using(connection).enqueue(save.call("a"), key="a", debounce=10)

    with closing(Harness(postgres_store_url)) as harness:

        @harness.app.task(name="mail.send")
        def save(ctx: Context, text: str) -> None: ...

        with pytest.raises(WrongPlace, match="debounce"):
            asyncio.run(refused())
