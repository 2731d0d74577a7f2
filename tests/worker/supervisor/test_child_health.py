"""Whether a child still controls its jobs: decisions without processes."""

from __future__ import annotations

import math

import pytest

from detent.worker.supervisor.board import BoardEntry
from detent.worker.supervisor.child_health import (
    DEAF_AFTER,
    Observation,
    find_deaf_at,
    find_unheard,
    judge_child,
    keep_cancels,
)

GRACE = 10.0


def line(
    job_id: int, *, attempt: int = 1, begun: float = 0.0, ends: float = 0.0, here: int = 1, after: float = 0
) -> BoardEntry:
    return BoardEntry(job_id, attempt, begun, ends, here, after)


def test_a_child_is_deaf_two_seconds_after_the_deadline_of_a_job() -> None:
    lines = [line(1), line(2, ends=5.0), line(3, ends=7.0)]
    assert find_deaf_at(lines, {}, GRACE) == 5.0 + DEAF_AFTER
    assert find_unheard(lines, {}, GRACE, 6.9) is None
    assert find_unheard(lines, {}, GRACE, 7.0) == lines[1]
    assert find_deaf_at([line(1)], {}, GRACE) == math.inf


def test_a_child_is_deaf_after_the_grace_of_a_cancel() -> None:
    """J8: the earlier of the deadline and the cancel counts, and a cancel counts from when it was first told."""
    assert find_deaf_at([line(1)], {(1, 1): 3.0}, GRACE) == 3.0 + GRACE + DEAF_AFTER
    assert find_deaf_at([line(1, ends=5.0)], {(1, 1): 3.0}, GRACE) == 5.0 + DEAF_AFTER
    assert find_deaf_at([line(1, begun=4.0)], {(1, 1): 3.0}, GRACE) == 4.0 + GRACE + DEAF_AFTER


def test_a_cancel_concerns_one_attempt() -> None:
    """J8: a retried job used to be killed for the cancel of its attempt before."""
    assert find_deaf_at([line(1, attempt=2)], {(1, 1): 3.0}, GRACE) == math.inf


def test_a_cancel_is_forgotten_with_its_attempt() -> None:
    """The first time counts, however often it is told; what has ended is not remembered."""
    told = keep_cancels({}, [line(1), line(2)], [(1, 1), (2, 1)], 3.0)
    assert keep_cancels(told, [line(1), line(2, attempt=2)], [(1, 1)], 4.0) == {(1, 1): 3.0}
    assert keep_cancels(told, [], [], 4.0) == {}


# -- the verdict -----------------------------------------------------------------------------------------------


def seen(
    *entries: BoardEntry, now: float = 100.0, silent_for: float = 0.0, renewals_waited: float | None = None
) -> Observation:
    return Observation(now, entries, {}, silent_for, renewals_waited)


def cause_of(observation: Observation) -> str | None:
    verdict = judge_child(observation, cancel_grace=GRACE, held_up_max=10.0)
    return None if verdict is None else verdict.cause


def test_a_child_that_ends_its_jobs_in_time_may_go_on() -> None:
    assert cause_of(seen()) is None
    assert cause_of(seen(line(1), line(2, ends=200.0))) is None
    assert cause_of(seen(line(1, ends=99.0))) is None


def test_a_deaf_child_is_killed_for_the_job_that_it_did_not_end() -> None:
    """J12: the verdict names the job, for the log and for the ending of its attempt."""
    verdict = judge_child(seen(line(1), line(2, ends=90.0)), cancel_grace=GRACE, held_up_max=10.0)
    assert verdict is not None
    assert (verdict.cause, verdict.job_id, verdict.why) == ("deaf", 2, "job 2 was not ended in time")


def test_a_child_that_does_not_obey_a_cancel_is_deaf() -> None:
    """J8: a grace period, and the time in which any child has to react."""
    for told_at, cause in ((100.0 - GRACE - DEAF_AFTER, "deaf"), (90.0, None)):
        observation = Observation(100.0, [line(1)], {(1, 1): told_at}, 0.0, None)
        assert cause_of(observation) == cause


@pytest.mark.parametrize(
    ("waited", "silent_for", "cause"),
    [(None, 99.0, None), (99.0, 0.1, None), (5.0, 99.0, None), (10.1, 10.1, "database")],
)
def test_a_child_holds_the_database_if_renewals_wait_while_it_is_silent(
    waited: float | None, silent_for: float, cause: str | None
) -> None:
    """A silent child harms other workers only while their renewals wait, and only a silent one can be the cause."""
    assert cause_of(seen(line(1), silent_for=silent_for, renewals_waited=waited)) == cause


def test_a_job_that_was_not_ended_is_the_first_reason() -> None:
    """It decides what becomes of the jobs: a job past its time has timed out, whatever else its process did."""
    assert cause_of(seen(line(1, ends=90.0), silent_for=99.0, renewals_waited=99.0)) == "deaf"
