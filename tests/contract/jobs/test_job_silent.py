"""job_silent: jobs in flight that nothing is heard of."""

from __future__ import annotations

from detent.model.service_records import SilentRow, TaskTimes
from detent.store.contract import Store
from detent.testing.stores import StoreClock
from tests.contract.jobs.sample_jobs import claim, claim_one, commit, enqueue, event

DAY = 86_400.0


def silent(store: Store, queue: str | None = None) -> list[tuple[int, str]]:
    """By the times of R1: five minutes and ten."""
    return [(row.job_id, row.kind) for row in store.job_silent(queue, 300, 600, 10)]


def test_claimed_and_not_begun_for_five_minutes_is_stale(store: Store, clock: StoreClock) -> None:
    """R1: and what is committed, or waits for its claim, is not."""
    enqueue(store)
    held = claim_one(store, lease=DAY)
    enqueue(store)
    store.job_commit(commit(claim_one(store, lease=DAY)))
    enqueue(store)
    began = clock.now()
    clock.advance(299)
    assert silent(store) == []
    clock.advance(1)
    assert store.job_silent(None, 300, 600, 10) == [
        SilentRow(
            job_id=held.job_id,
            attempt=1,
            queue="default",
            task="mail.send",
            worker="ana",
            kind="stale",
            since=began,
        )
    ]


def test_only_under_these_leases(store: Store, clock: StoreClock) -> None:
    """A worker asks for the jobs that it holds itself."""
    enqueue(store)
    (mine,) = store.job_get([claim_one(store, lease=DAY).job_id])
    enqueue(store)
    claim_one(store, lease=DAY)
    assert mine is not None
    assert mine.lease_id is not None
    clock.advance(300)
    assert [row.job_id for row in store.job_silent(None, 300, 600, 10, [mine.lease_id])] == [mine.id]
    assert store.job_silent(None, 300, 600, 10, []) == []


def test_begun_and_silent_for_ten_minutes_is_stalled(store: Store, clock: StoreClock) -> None:
    """R1: each event is a sign of life."""
    enqueue(store)
    held = claim_one(store, lease=DAY)
    store.job_start([(held.job_id, held.attempt)])
    clock.advance(599)
    store.event_append([event(held)])
    clock.advance(599)
    assert silent(store) == []
    clock.advance(1)
    assert silent(store) == [(held.job_id, "stalled")]


def test_what_was_asked_to_stop_or_has_lost_its_lease_is_not_asked_again(store: Store, clock: StoreClock) -> None:
    """R1: the one is being stopped, the other is the reaper's."""
    enqueue(store)
    asked = claim_one(store, lease=DAY)
    enqueue(store)
    claim_one(store, lease=1000)
    clock.advance(999)
    assert len(silent(store)) == 2
    store.job_cancel([asked.job_id], "recovery", "stale")
    assert len(silent(store)) == 1
    clock.advance(1)
    assert silent(store) == []
    store.lease_reap(10)


def test_the_longest_silent_first_of_one_queue_and_no_more_than_asked(store: Store, clock: StoreClock) -> None:
    jobs = []
    for queue in ("b", "a", "a"):
        jobs.append(enqueue(store, queue=queue))
        claim_one(store, lease=DAY)
        clock.advance(1)
    clock.advance(300)
    assert [job_id for job_id, _ in silent(store)] == jobs
    assert [job_id for job_id, _ in silent(store, "a")] == jobs[1:]
    assert [row.job_id for row in store.job_silent(None, 300, None, 1)] == jobs[:1]
    assert store.job_silent(None, None, 0, 10) == []


def test_what_a_task_says_of_itself_goes_before(store: Store, clock: StoreClock) -> None:
    """R1: a task that works in silence for long, and one that never should; also where the queue says never."""
    store.task_times_put(
        [
            TaskTimes(task="quick", stale_after=10.0, stalled_after=60.0),
            TaskTimes(task="patient", stalled_after=3600.0),
        ]
    )
    jobs = {task: enqueue(store, task=task) for task in ("quick", "patient", "mail.send")}
    held = claim(store, tasks=list(jobs), lease=DAY)
    clock.advance(10)
    assert silent(store) == [(jobs["quick"], "stale")]
    assert [row.job_id for row in store.job_silent(None, None, None, 10)] == [jobs["quick"]]
    store.job_start([(one.job_id, one.attempt) for one in held])
    clock.advance(60)
    assert silent(store) == [(jobs["quick"], "stalled")]
    clock.advance(600)
    assert {job_id for job_id, _ in silent(store)} == {jobs["quick"], jobs["mail.send"]}
    clock.advance(3000)
    assert {job_id for job_id, _ in silent(store)} == set(jobs.values())
