"""Why a ready job is not taken: nobody alive, nobody who knows it, nobody of its queue, nobody free."""

from __future__ import annotations

from typing import Any

from detent.model.records import Abort
from detent.model.service_records import WorkerSeen
from detent.model.workflow_records import NewStep
from tests.app.shop import Shop


def alive(
    shop: Shop,
    worker_id: int,
    *tasks: str,
    queues: tuple[str, ...] | None = None,
    stopping: bool = False,
    versions: tuple[int, ...] = (),
) -> None:
    """A worker shows that it lives."""
    shop.app.store.worker_seen(
        WorkerSeen(
            id=worker_id,
            name="w",
            host="h",
            pid=1,
            queues=queues,
            tasks=tasks,
            slots=1,
            running=1,
            stopping=stopping,
            versions=dict.fromkeys(tasks, versions) if versions else {},
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


def test_a_worker_whose_process_is_being_started_does_not_know_its_tasks_yet(shop: Shop) -> None:
    """W3: why does not say of a worker whose process has died that it does not know the task."""
    job = shop.welcome.enqueue(user_id=1)
    alive(shop, 1)
    assert job.why().endswith("none of 1 alive does, and one of them is still starting")
    alive(shop, 2)
    alive(shop, 3, "other")
    assert job.why().endswith("none of 3 alive does, and 2 of them are still starting")


def test_workers_that_fell_silent_do_not_count(shop: Shop) -> None:
    """W3"""
    job = shop.welcome.enqueue(user_id=1)
    alive(shop, 1, "welcome")
    assert [worker.id for worker in shop.app.workers.list()] == [1]
    shop.clock.advance(11)
    assert shop.app.workers.list() == []
    assert job.why().endswith("no worker is alive")


def test_a_workflow_whose_version_no_worker_supports(shop: Shop) -> None:
    """It waits, and why names its version and those that the workers support."""
    job = shop.welcome.enqueue(user_id=1)
    store = shop.app.store
    asked: Any = {"worker": "w", "queues": None, "tasks": ["welcome"], "limit": 1, "lease": 30.0}
    (held,) = store.job_claim(lease_id=store.ids_reserve(1), **asked)
    place: dict[str, Any] = {"job_id": held.job_id, "attempt": held.attempt}
    store.step_record([NewStep(**place, version=1, generation=1, path="a", seq=1, kind="call", value="1")])
    store.job_abort([Abort(**place, outcome="error")], "w")
    began = "it began under version 1, and no live worker supports that version "
    for worker_id in (1, 2, 3):
        alive(shop, worker_id, "welcome", versions=(2,))
    with shop.untouched():
        assert job.why() == began + "(3 live workers support version 2)"
    alive(shop, 3, "welcome", versions=(2, 3, 4))
    alive(shop, 4, "welcome")
    assert job.why() == began + (
        "(one live worker supports no version of it, 2 live workers support version 2, "
        "one live worker supports versions 2, 3 and 4)"
    )
    alive(shop, 5, "welcome", queues=("bulk",), versions=(1, 2))
    assert job.why().endswith("one worker would know task 'welcome', of other queues only")
    alive(shop, 6, "welcome", versions=(1, 2))
    assert job.why().endswith("a free slot: one worker would take it")
