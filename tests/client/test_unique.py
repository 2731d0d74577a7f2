"""`unique=`: one job for equal calls, while it is pending, or while it is active (pending or running)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from detent import Context, Limit
from detent.client.task import PlainTask
from detent.errors import InvalidInput
from detent.testing.harness import Harness


@pytest.fixture
def detent(store_url: str) -> Iterator[Harness]:
    with closing(Harness(store_url)) as harness:
        yield harness


def declare(detent: Harness) -> PlainTask[[int], str]:
    @detent.app.task(name="sync", unique="active", limit=Limit(concurrency=5))
    def sync(ctx: Context, shop: int) -> str:
        return "created" if sync.enqueue(shop).created else "found"

    return sync


def test_unique_while_active(detent: Harness) -> None:
    """Unique while pending, a running job could be enqueued again: two of them ran at once."""
    sync = declare(detent)
    job = sync.enqueue(7)
    assert sync.enqueue(7) == job
    assert sync.enqueue(8) != job
    theirs = detent.app.enqueue(sync.call(7), tenant="acme")
    assert theirs != job
    theirs.cancel(actor="ana")
    assert len(detent.work()) == 2
    assert job.refresh().result == "found"
    again = sync.enqueue(7)
    assert (again.created, again == job) == (True, False)
    assert detent.app.record.verify() == []


def test_a_crash_does_not_free_it(detent: Harness) -> None:
    sync = declare(detent)
    job = sync.enqueue(7)
    detent.crash(job)
    detent.work()
    assert (job.refresh().state, sync.enqueue(7)) == ("running", job)
    detent.clock.advance(detent.lease + 1)
    detent.work()
    assert job.refresh().state == "succeeded"
    assert sync.enqueue(7) != job


def test_a_schedule_of_such_a_task_is_refused_with_what_to_do(detent: Harness) -> None:
    sync = declare(detent)
    with pytest.raises(InvalidInput, match=r"unique='pending', together with limit=Limit\(concurrency=1\)"):
        detent.app.schedule("* * * * *", sync.call(7))
