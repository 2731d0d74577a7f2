"""Whether a child still controls its jobs, and what becomes of them when it dies: decisions without processes."""

from __future__ import annotations

import math

import pytest

from detent.worker.attempt.endings import PROCESS_DIED
from detent.worker.supervisor.board import BoardEntry
from detent.worker.supervisor.child_health import (
    DEAF_AFTER,
    Observation,
    find_deaf_at,
    find_unheard,
    judge_child,
    keep_cancels,
)
from detent.worker.supervisor.dead_child import Death, DeathCause, decide_ending

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


# -- the jobs of a dead child ----------------------------------------------------------------------------------


def after(cause: DeathCause, *lines: BoardEntry, told: frozenset[tuple[int, int]] = frozenset()) -> dict[int, str]:
    """The outcome of attempt 1 of each job, and of job 99, which has not begun; the child died at 100."""
    death = Death(100.0, "signal SIGKILL", cause, "why", {one.job_id: one for one in lines}, told)
    return {job_id: decide_ending(death, job_id, 1)[0] for job_id in (*(one.job_id for one in lines), 99)}


def test_whoever_dies_alone_is_charged_and_nobody_else_is() -> None:
    """J7: a function that was the only one in its process brought it down."""
    assert after("itself", line(1)) == {1: "crashed", 99: "released"}
    assert after("database", line(1)) == {1: "crashed", 99: "released"}
    assert after("itself", line(1), line(2, here=0)) == {1: "crashed", 2: "released", 99: "released"}
    assert after("itself", line(1), line(2)) == {1: "released", 2: "released", 99: "released"}


def test_a_time_out_is_charged_only_to_who_can_have_caused_it() -> None:
    """J12: while one function holds the process, the time of the others runs out without their fault."""
    assert after("deaf", line(1, ends=98.0)) == {1: "timed_out", 99: "released"}
    assert after("deaf", line(1, ends=98.0), line(2, ends=98.0)) == {1: "released", 2: "released", 99: "released"}
    assert after("deaf", line(1), line(2, ends=98.0)) == {1: "released", 2: "released", 99: "released"}
    # In a process of its own it may have ended long ago: the child that was held could not hear of it.
    assert after("deaf", line(1), line(2, here=0, ends=98.0)) == {1: "released", 2: "released", 99: "released"}
    assert after("deaf", line(2, here=0, ends=98.0)) == {2: "timed_out", 99: "released"}
    assert after("deaf", line(2, here=0, ends=98.0, after=-1)) == {2: "released", 99: "released"}


@pytest.mark.parametrize("cause", ["deaf", "itself"])
def test_those_who_may_be_to_blame_are_tried_apart(cause: DeathCause) -> None:
    """J7: also where the supervisor ended the process: else the one that holds it would hold the next one too."""
    death = Death(100.0, "signal SIGKILL", cause, "why", {1: line(1), 2: line(2, ends=98.0)})
    assert all((decide_ending(death, job_id, 1)[1] or "").startswith(PROCESS_DIED) for job_id in (1, 2))


def test_a_cancel_is_obeyed_only_by_its_attempt() -> None:
    told = frozenset({(1, 1), (2, 2)})
    assert after("deaf", line(1), line(2), told=told) == {1: "cancelled", 2: "released", 99: "released"}


def test_what_is_stopped_with_its_worker_is_not_charged() -> None:
    assert after("stop", line(1, ends=98.0), line(2)) == {1: "released", 2: "released", 99: "released"}


def test_another_attempt_of_the_same_job_is_another_matter() -> None:
    death = Death(100.0, "signal SIGKILL", "itself", "", {1: line(1, attempt=2)})
    assert decide_ending(death, 1, 1) == ("released", None)
