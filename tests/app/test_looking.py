"""Looking: lists, events, transitions, counts, the past, and why."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from detent import Context, Job
from detent.errors import InvalidInput
from detent.testing.stores import START
from tests.app.shop import Shop


def counted(counts: list[Any]) -> dict[tuple[str | None, str, str], int]:
    return {(one.tenant, one.queue, one.state): one.jobs for one in counts if one.jobs}


def test_jobs_that_fit(shop: Shop) -> None:
    mail = shop.app.enqueue_many([shop.welcome.call(n) for n in range(3)], tenant="acme")
    other = shop.later.enqueue(numbers=[])
    mail[0].cancel(actor="ana")
    jobs = shop.app.jobs.list
    assert jobs() == [other, *mail[::-1]]
    assert jobs(state="pending") == [other, mail[2], mail[1]]
    assert jobs(task="later") == jobs(queue="default") == jobs(tenant="") == [other]
    assert jobs(tenant="acme", state="cancelled") == [mail[0]]
    page = jobs(limit=2)
    assert page == [other, mail[2]]
    assert jobs(after=page.next) == [mail[1], mail[0]]
    assert jobs(after=page.next).next is None
    assert jobs(task="unheard of") == []


@pytest.mark.parametrize(
    ("filters", "field"),
    [
        ({"state": "done"}, "state"),
        ({"limit": 0}, "limit"),
        ({"limit": 10_001}, "limit"),
        ({"limit": "5"}, "limit"),
        ({"after": "17"}, "after"),
        ({"after": 17}, "after"),
        ({"run": -1}, "run id"),
        ({"since": datetime(2026, 1, 1)}, "since"),  # noqa: DTZ001
        ({"metadata": {"a": [1]}}, "metadata.a"),
        ({"queue": "a\0"}, "queue"),
        ({"tenant": 7}, "tenant"),
    ],
)
def test_a_filter_that_cannot_be_meant_is_refused(shop: Shop, filters: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        shop.app.jobs.list(**filters)
    assert refusal.value.field == field


def test_jobs_are_found_by_what_is_known_of_them(shop: Shop) -> None:
    """A key, a correlation id, metadata, an error, a time."""
    shop.welcome.enqueue(1)
    told = {"key": "order-17", "correlation_id": "c-1", "metadata": {"order": 17}}
    found = shop.app.enqueue(shop.welcome.call(2), **told)  # type: ignore[arg-type]
    jobs, where = shop.app.jobs.list, shop.app.jobs.where
    assert jobs(key="order-17") == jobs(correlation_id="c-1") == jobs(metadata={"order": 17}) == [found]
    assert jobs(metadata={"order": "17"}) == jobs(error="no price") == jobs(until=START) == []
    assert len(jobs(since=START, metadata={})) == 2
    details = found.details()
    assert (details and details.key, found.progress()) == ("order-17", None)
    assert (where(key="order-17").count(), where(metadata={"order": 18}).count()) == (1, 0)
    assert where(key="order-17").cancel(actor="ana").wait().changed == 1
    assert [job.state for job in jobs()] == ["cancelled", "pending"]


def test_listed_jobs_have_their_tasks_results(shop: Shop) -> None:
    shop.later.enqueue(numbers=[1, 2])
    shop.work()
    (job,) = shop.app.jobs.list()
    assert job.result == 3


def test_events_in_order_each_once(shop: Shop) -> None:
    """E1: level, message, payload, time, attempt, sequence number."""

    @shop.app.task(name="talks")
    def talks(ctx: Context) -> None:
        ctx.event("first", user_id=7)
        ctx.event("second", level="warning", key="once")
        ctx.event("second", level="warning", key="once")
        ctx.progress(1, 2)

    job = talks.enqueue()
    assert list(job.events()) == []
    shop.work()
    lines = list(job.events())
    assert [(line.seq, line.attempt, line.level, line.message, line.payload) for line in lines] == [
        (1, 1, "info", "first", '{"user_id":7}'),
        (2, 1, "warning", "second", None),
        (3, 1, "info", "progress", '{"done":1,"total":2}'),
    ]
    assert list(job.events(follow=True)) == lines


def test_following_more_than_a_page(shop: Shop) -> None:
    @shop.app.task(name="talks")
    def talks(ctx: Context) -> None:
        for number in range(1203):
            ctx.event(f"line {number}")

    job = talks.enqueue()
    shop.work()
    assert [line.seq for line in job.events(follow=True)] == list(range(1, 1204))


def test_every_change_is_on_record(shop: Shop) -> None:
    """E4: in order, with who did it; and every attempt with its end."""
    job = shop.quarantined()
    job.retry(actor="ana", reason="mended")
    assert [(line.from_state, line.to_state, line.actor) for line in job.history()] == [
        (None, "pending", "client"),
        ("pending", "running", "test"),
        ("running", "failed", "test"),
        ("failed", "pending", "test"),
        ("pending", "running", "test"),
        ("running", "failed", "test"),
        ("failed", "quarantined", "test"),
        ("quarantined", "pending", "ana"),
    ]
    attempts = job.executions()
    assert [(one.attempt, one.outcome, one.next_state) for one in attempts] == [
        (1, "error", "pending"),
        (2, "error", "quarantined"),
    ]


def test_the_past(shop: Shop) -> None:
    """E5: the state of a job and the counts of every queue, as of any moment."""
    job = shop.app.enqueue(shop.welcome.call(1), tenant="acme")
    enqueued = shop.clock.now()
    shop.clock.advance(10)
    shop.work()
    shop.later.enqueue(numbers=[])
    worked = shop.clock.now()
    shop.clock.advance(10)
    assert job.state_at(START - timedelta(seconds=1)) is None
    assert (job.state_at(enqueued), job.state_at(worked)) == ("pending", "succeeded")
    assert counted(shop.app.jobs.counts(at=START - timedelta(days=1))) == {}
    assert counted(shop.app.jobs.counts(at=enqueued)) == {(None, "mail", "pending"): 1}
    assert counted(shop.app.jobs.counts(at=enqueued, by_tenant=True)) == {("acme", "mail", "pending"): 1}
    assert counted(shop.app.jobs.counts(at=enqueued, tenant="other")) == {}
    now = {("acme", "mail", "succeeded"): 1, ("", "default", "pending"): 1}
    assert (
        counted(shop.app.jobs.counts(at=worked, by_tenant=True)) == counted(shop.app.jobs.counts(by_tenant=True)) == now
    )


def test_a_naive_moment_is_refused(shop: Shop) -> None:
    naive = datetime(2026, 1, 1)  # noqa: DTZ001
    with pytest.raises(InvalidInput, match="at: found the naive time"):
        shop.app.jobs.counts(at=naive)
    with pytest.raises(InvalidInput, match="when: found the naive time"):
        shop.welcome.enqueue(1).state_at(naive)


def test_pause_and_resume(shop: Shop) -> None:
    """J12, E4: recorded, and nothing is claimed meanwhile."""
    job = shop.welcome.enqueue(user_id=7)
    assert shop.app.queues.pause("mail", actor="ana", reason="provider is down").changed
    with shop.untouched():
        assert not shop.app.queues.pause("mail", actor="bob").changed
    assert shop.work() == []
    assert job.why() == "its queue 'mail' is paused by ana: provider is down"
    assert shop.app.queues.resume("mail", actor="ana").changed
    assert shop.work() == [job]


def test_why(shop: Shop) -> None:
    """J13"""
    app = shop.app

    def why(job: Job[Any]) -> str:
        return job.why()

    ready = shop.welcome.enqueue(user_id=7)
    assert (
        why(ready) == "it is ready in queue 'mail' and waits for a worker that knows task 'welcome': no worker is alive"
    )
    later = app.enqueue(shop.welcome.call(7), due_at=START + timedelta(hours=1))
    assert why(later) == "it waits for its time: due at 2026-01-01T01:00:00+00:00"
    later.cancel(actor="ana", reason="never mind")
    assert why(later) == "it was cancelled (cancel by ana: never mind)"
    shop.crash(ready, "started")
    shop.work()
    assert why(ready) == "'test' holds attempt 1 until 2026-01-01T00:00:30+00:00"
    shop.clock.advance(31)
    shop.work()
    assert why(ready) == "it succeeded with attempt 2 (1 of 4 used up)"
    failing = shop.fails.enqueue(why="boom")
    shop.work()
    assert why(failing).endswith(
        f" after attempt 1, which failed at {shop.clock.now().isoformat()}: RuntimeError: boom"
    )
    assert why(shop.quarantined()) == "it is dead (quarantined) after attempt 2: RuntimeError: boom"
    now = shop.clock.now()
    short = app.enqueue(shop.welcome.call(8), due_at=now + timedelta(seconds=9), expires_at=now + timedelta(seconds=5))
    shop.clock.advance(6)
    shop.work()
    assert why(short) == "it was cancelled (expire by system: no reason given)"
