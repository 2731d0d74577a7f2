"""Why a ready job is not taken: nobody alive, nobody who knows it, nobody of its queue, nobody free."""

from __future__ import annotations

from detent.model.service_records import WorkerSeen
from tests.app.shop import Shop


def alive(
    shop: Shop, worker_id: int, *tasks: str, queues: tuple[str, ...] | None = None, stopping: bool = False
) -> None:
    """A worker shows that it lives."""
    shop.app.store.worker_seen(
        WorkerSeen(
            id=worker_id, name="w", host="h", pid=1, queues=queues, tasks=tasks, slots=1, running=1, stopping=stopping
        )
    )


def test_a_task_that_no_worker_knows_waits_untouched(shop: Shop) -> None:
    """J13: and why says so, for as long as that is so."""
    job = shop.welcome.enqueue(user_id=1)
    waits = "it is ready in queue 'mail' and waits for "
    with shop.untouched():
        assert job.why() == waits + "a worker that knows task 'welcome': no worker is alive"
    alive(shop, 1, "other")
    alive(shop, 2, "another")
    assert job.why() == waits + "a worker that knows task 'welcome': none of 2 alive does"
    alive(shop, 3, "welcome", queues=("bulk",))
    assert job.why() == (waits + "a worker that serves it: one worker would know task 'welcome', of other queues only")
    alive(shop, 4, "welcome", queues=("mail",), stopping=True)
    assert "of other queues only" in job.why()
    alive(shop, 4, "welcome", queues=("mail",))
    alive(shop, 5, "welcome")
    assert job.why() == waits + "a free slot: 2 workers would take it"
    assert (job.refresh().state, job.attempt) == ("pending", 0)


def test_workers_that_fell_silent_do_not_count(shop: Shop) -> None:
    """W3"""
    job = shop.welcome.enqueue(user_id=1)
    alive(shop, 1, "welcome")
    assert [worker.id for worker in shop.app.workers.list()] == [1]
    shop.clock.advance(11)
    assert shop.app.workers.list() == []
    assert job.why().endswith("no worker is alive")
