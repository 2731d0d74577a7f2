"""Limits as a user declares them, and what `why` says of them."""

from __future__ import annotations

from typing import Any

import pytest

from detent import Context, Detent, Limit, Throttled
from detent.errors import InvalidInput, InvalidSetting, NotFound
from detent.testing.harness import Harness


def declare(app: Detent, **options: Any) -> Any:
    """A task that does nothing."""

    @app.task(name="mail.send", **options)
    def send(ctx: Context) -> None:
        pass

    return send


def test_a_rate_is_kept_by_whoever_works(detent: Harness) -> None:
    """J12, J13: a burst goes through, then its share; `why` names what a job waits for."""
    send = declare(detent.app, limit=Limit(rate=2, per=1.0, burst=3), limit_key="shop-api")
    jobs = [send.enqueue() for _ in range(6)]
    assert len(detent.work()) == 3
    assert jobs[3].why() == "its limit 'shop-api' is used up: 2 may start per 1 s"
    detent.clock.advance(1)
    assert len(detent.work()) == 2
    detent.clock.advance(1)
    assert len(detent.work()) == 1


@pytest.mark.parametrize(
    ("limit", "first", "second"),
    [
        (Limit(rate=10), 1, 10),
        (Limit(rate=10, per=60), 1, 0),
        (Limit(rate=100), 10, 100),
        (Limit(rate=10, burst=10), 10, 10),
    ],
)
def test_without_a_burst_a_rate_is_kept_from_the_first_second_on(
    detent: Harness, limit: Limit, first: int, second: int
) -> None:
    """A rate of 10 let 20 jobs start within the first second: the burst was as large as the rate."""
    send = declare(detent.app, limit=limit)
    detent.app.enqueue_many(send.call() for _ in range(300))
    assert len(detent.work()) == first
    started = 0
    for _ in range(20):
        detent.clock.advance(0.05)
        started += len(detent.work())
    assert started == second


def test_a_full_limit_is_told_and_frees_itself(detent: Harness) -> None:
    """J12: a worker that died under a limit of one stands in nobody's way once its lease is over."""
    send = declare(detent.app, limit=Limit(concurrency=1))
    first, second = send.enqueue(), send.enqueue()
    detent.crash(first)
    detent.work()
    assert second.why() == "its limit 'mail.send' is full: 1 of 1 are running"
    detent.clock.advance(31)
    detent.work()
    assert (detent.app.jobs.get(first.id).state, detent.app.jobs.get(second.id).state) == ("succeeded", "succeeded")


def test_a_queue_has_a_limit_until_it_is_lifted(detent: Harness) -> None:
    """J12: by queue, at once."""
    send = declare(detent.app, queue="mail")
    detent.app.queues.limit("mail", Limit(concurrency=1))
    first, second = send.enqueue(), send.enqueue()
    detent.crash(first)
    detent.work()
    assert second.why() == "its limit 'queue:mail' is full: 1 of 1 are running"
    detent.app.queues.limit("mail", Limit())
    assert [job.id for job in detent.work()] == [second.id]


def test_the_other_side_says_no(detent: Harness) -> None:
    """B5: the pause holds for everybody, then the breaker; a person may end both."""
    answers = [True]

    @detent.app.task(limit=Limit(concurrency=5), limit_key="shop-api")
    def ask(ctx: Context) -> str:
        if answers[-1]:
            raise Throttled(10)
        return "yes"

    job = ask.enqueue()
    detent.work()
    other = ask.enqueue()
    assert detent.work() == []
    assert "its limit 'shop-api' is paused until" in other.why()
    for _ in range(5):
        detent.clock.advance(10)
        detent.work()
    detent.clock.advance(10)
    detent.work()
    assert "the breaker of its limit 'shop-api' is open until" in other.why()
    answers.append(False)
    assert detent.app.limits.resume("shop-api", actor="ana", reason="they are back").changed
    detent.work()
    assert (detent.app.jobs.get(job.id).result, detent.app.jobs.get(other.id).result) == ("yes", "yes")
    assert [(row.key, row.throttled) for row in detent.app.limits.list()] == [("shop-api", 0)]


def test_one_limit_for_each_key(detent: Harness) -> None:
    declare(detent.app, limit=Limit(concurrency=1), limit_key="shop-api")

    def other(ctx: Context) -> None:
        pass

    with pytest.raises(InvalidInput, match="two limits under the key 'shop-api'"):
        detent.app.task(limit=Limit(concurrency=2), limit_key="shop-api")(other)
    detent.app.task(limit=Limit(concurrency=1), limit_key="shop-api")(other)


@pytest.mark.parametrize(
    "fields",
    [
        {"rate": 0},
        {"rate": float("nan")},
        {"rate": "2"},
        {"per": 0},
        {"per": None},
        {"burst": 0.5},
        {"concurrency": 0},
        {"concurrency": True},
        {"concurrency": 1.5},
        {"concurrency": 10**9},
    ],
)
def test_a_limit_that_lets_nothing_through_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(InvalidSetting, match=next(iter(fields))):
        Limit(**fields)


@pytest.mark.parametrize("options", [{"limit": 5}, {"limit_key": "shop"}])
def test_a_task_says_what_its_limit_is(detent: Harness, options: dict[str, Any]) -> None:
    with pytest.raises(InvalidSetting):
        declare(detent.app, **options)


def test_a_limit_that_nobody_made(detent: Harness) -> None:
    with pytest.raises(NotFound):
        detent.app.limits.resume("nobody", actor="ana")
