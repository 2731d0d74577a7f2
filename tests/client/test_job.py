"""Handles: what they show, how one waits, and how a job that did not succeed says so."""

from __future__ import annotations

import math
import pickle
from datetime import timedelta
from typing import Any

import pytest

from detent import Context
from detent.errors import InvalidInput, JobFailed, JobTimeout, NotFound, ResultExpired
from detent.model.service_records import TaskTimes
from detent.testing.stores import START
from tests.app.shop import Shop


def test_a_handle_shows_the_last_look(shop: Shop) -> None:
    job = shop.welcome.enqueue(user_id=7)
    assert repr(job) == f"<Job {job.id}>"
    assert (job.refresh().state, job.attempt, job.rests, job.finished_at) == ("pending", 0, False, None)
    shop.work()
    assert job.state == "pending"
    assert job.refresh() is job
    assert (job.state, job.attempt, job.rests, job.finished_at) == ("succeeded", 1, True, START)
    assert repr(job) == f"<Job {job.id} welcome succeeded>"


def test_handles_of_one_job_are_equal(shop: Shop) -> None:
    job, other = shop.welcome.enqueue(user_id=7), shop.welcome.enqueue(user_id=8)
    assert {job, shop.app.jobs.get(job.id), other} == {job, other}
    assert job != job.id


def test_an_id_may_be_text(shop: Shop) -> None:
    """Ids are strings in JSON."""
    job = shop.welcome.enqueue(user_id=7)
    assert shop.app.jobs.get(str(job.id)) == job
    assert job.why() == job.why()
    job.cancel(actor="ana")
    assert job.refresh().state == "cancelled"


@pytest.mark.parametrize("wrong", [-1, 1 << 63, True, 1.0, None, "", "seven", "-1", "٣", "1" * 30, b"7"])
def test_what_is_no_id_is_refused(shop: Shop, wrong: object) -> None:
    with pytest.raises(InvalidInput, match=r"job id: found .*; allowed: a whole number below 2\^63"):
        shop.app.jobs.get(wrong)  # type: ignore[arg-type]


def test_a_job_that_is_not_there(shop: Shop) -> None:
    with pytest.raises(NotFound, match="there is no job 4711 in this database"):
        shop.app.jobs.get(4711)
    with pytest.raises(NotFound):
        shop.app.jobs.get(4711).why()
    with pytest.raises(NotFound):
        list(shop.app.jobs.get(4711).events())


def test_a_result_has_its_type(shop: Shop) -> None:
    """J13: stored, fetched and waited for; an async function's result is what it awaits."""
    text, number = shop.welcome.enqueue(user_id=7), shop.later.enqueue(numbers=[1, 2, 3])
    shop.work()
    assert (text.wait().result, number.wait().result) == ("sent to 7", 6)
    assert shop.app.jobs.get(number.id).result == 6
    with shop.second() as other:
        assert other.jobs.get(number.id).result == 6


def test_waiting_ends_in_a_timeout_and_the_job_goes_on(shop: Shop) -> None:
    """J13"""
    job = shop.welcome.enqueue(user_id=7)
    with pytest.raises(TimeoutError) as timeout:
        job.wait(timeout=10)
    assert isinstance(timeout.value, JobTimeout)
    assert (timeout.value.job_id, timeout.value.state, timeout.value.waited) == (job.id, "pending", 10)
    assert shop.clock.now() == START + timedelta(seconds=10)
    with pytest.raises(JobTimeout, match="is still pending after 0 s of waiting"):
        _ = job.result
    shop.work()
    assert job.wait(timeout=0).result == "sent to 7"


def test_a_job_that_rests_without_success_says_why(shop: Shop) -> None:
    job = shop.quarantined()
    with pytest.raises(JobFailed) as failure:
        _ = job.wait(timeout=1).result
    assert (failure.value.job_id, failure.value.state) == (job.id, "quarantined")
    assert "RuntimeError: boom" in failure.value.error
    assert str(failure.value) == f"job {job.id} is quarantined: RuntimeError: boom"

    other = shop.rests.enqueue()
    shop.work()
    with pytest.raises(JobFailed, match="failed: RuntimeError: no dead letters") as failure:
        _ = other.refresh().result
    assert failure.value.state == "failed"

    third = shop.welcome.enqueue(user_id=1)
    third.cancel(actor="ana", reason="wrong user")
    with pytest.raises(JobFailed, match=f"job {third.id} is cancelled: cancel by ana: wrong user"):
        _ = third.refresh().result


def test_waiting_looks_less_and_less_often(shop: Shop) -> None:
    """G6: up to wait_poll, and never past the end."""
    pauses = []
    job = shop.welcome.enqueue(user_id=7)

    def wait() -> None:
        for pause in job._wait_steps(timeout=3):
            pauses.append(pause)
            shop.clock.sleep(pause)

    with pytest.raises(JobTimeout):
        wait()
    assert pauses[:2] == sorted(pauses[:2])
    assert max(pauses) == shop.app.settings.wait_poll
    assert sum(pauses) == pytest.approx(3, abs=1e-4)


def test_refusals_can_be_pickled(shop: Shop) -> None:
    """They cross process boundaries, and say the same there."""
    with pytest.raises(NotFound) as refusal:
        shop.app.jobs.get(4711)
    assert str(pickle.loads(pickle.dumps(refusal.value))) == str(refusal.value)


def test_a_result_that_is_kept_for_a_time_is_no_more_when_that_is_over(shop: Shop) -> None:
    """J13: it says so by itself, swept away or not; the job stays, and other results too."""

    @shop.app.task(name="brief", result_ttl=60, stalled_after=math.inf)
    def brief(ctx: Context) -> str:
        return "for a minute"

    @shop.app.task(name="nothing", result_ttl=60)
    def nothing(ctx: Context) -> None: ...

    jobs, lasting = (brief.enqueue(), nothing.enqueue()), shop.welcome.enqueue(user_id=7)
    shop.work()
    assert [job.refresh().result for job in jobs] == ["for a minute", None]
    shop.clock.advance(60)
    for look in (lambda: jobs[0].refresh().result, lambda: shop.app.jobs.get(jobs[0].id).result):
        with pytest.raises(ResultExpired) as gone:
            look()
        assert (gone.value.job_id, gone.value.until) == (jobs[0].id, START + timedelta(seconds=60))
    with shop.second() as other:
        assert other.jobs.get(jobs[0].id).result == "for a minute"
        assert shop.store.result_drop(None, 10).results == 1
        with pytest.raises(ResultExpired, match="its result was kept only until 2026-01-01T00:01:00"):
            _ = other.jobs.get(jobs[0].id).result
    assert (jobs[0].refresh().state, jobs[1].refresh().result, lasting.refresh().result) == (
        "succeeded",
        None,
        "sent to 7",
    )
    assert shop.app.record.verify() == []


def test_what_a_task_says_no_more_is_forgotten(shop: Shop) -> None:
    """R1, J13: by the next worker that starts with the code as it is now; tasks of others stay as they are."""
    shop.store.task_times_put(
        [TaskTimes(task="welcome", stale_after=1.0), TaskTimes(task="of another", result_ttl=1.0)]
    )

    @shop.app.task(name="quiet", aliases=["hushed"], stale_after=5, stalled_after=math.inf, result_ttl=60)
    def quiet(ctx: Context) -> None: ...

    for _ in range(2):
        shop.app.put_declared()
        assert [
            (one.task, one.stale_after, one.stalled_after, one.result_ttl) for one in shop.store.task_times_list()
        ] == [
            ("hushed", 5.0, 1e9, 60.0),
            ("of another", None, None, 1.0),
            ("quiet", 5.0, 1e9, 60.0),
        ]
    for name in ("stale_after", "stalled_after", "result_ttl"):
        for wrong in (0, -1, True, "soon", float("nan")):
            options: dict[str, Any] = {name: wrong}
            with pytest.raises(InvalidInput, match=name):
                shop.app.task(name="wrong", **options)(lambda ctx: None)
