"""Whether a child still controls its jobs, and what becomes of them when it dies: decisions without processes."""

from __future__ import annotations

import math

import pytest

from detent.worker.supervisor.board import Line
from detent.worker.supervisor.child_health import DEAF_AFTER, deaf_at, deaf_to, holds_database, still_told
from detent.worker.supervisor.dead_child import _DIED, Cause, Death, ending_after

GRACE = 10.0


def line(
    job_id: int, *, attempt: int = 1, begun: float = 0.0, ends: float = 0.0, here: int = 1, after: float = 0
) -> Line:
    return Line(job_id, attempt, begun, ends, here, after)


def test_a_child_is_deaf_two_seconds_after_the_deadline_of_a_job() -> None:
    lines = [line(1), line(2, ends=5.0), line(3, ends=7.0)]
    assert deaf_at(lines, {}, GRACE) == 5.0 + DEAF_AFTER
    assert deaf_to(lines, {}, GRACE, 6.9) is None
    assert deaf_to(lines, {}, GRACE, 7.0) == lines[1]
    assert deaf_at([line(1)], {}, GRACE) == math.inf


def test_a_child_is_deaf_after_the_grace_of_a_cancel() -> None:
    """J8: the earlier of the deadline and the cancel counts, and a cancel counts from when it was first told."""
    assert deaf_at([line(1)], {(1, 1): 3.0}, GRACE) == 3.0 + GRACE + DEAF_AFTER
    assert deaf_at([line(1, ends=5.0)], {(1, 1): 3.0}, GRACE) == 5.0 + DEAF_AFTER
    assert deaf_at([line(1, begun=4.0)], {(1, 1): 3.0}, GRACE) == 4.0 + GRACE + DEAF_AFTER


def test_a_cancel_concerns_one_attempt() -> None:
    """J8: a retried job used to be killed for the cancel of its attempt before."""
    assert deaf_at([line(1, attempt=2)], {(1, 1): 3.0}, GRACE) == math.inf


def test_a_cancel_is_forgotten_with_its_attempt() -> None:
    """The first time counts, however often it is told; what has ended is not remembered."""
    told = still_told({}, [line(1), line(2)], [(1, 1), (2, 1)], 3.0)
    assert still_told(told, [line(1), line(2, attempt=2)], [(1, 1)], 4.0) == {(1, 1): 3.0}
    assert still_told(told, [], [], 4.0) == {}


@pytest.mark.parametrize(
    ("waiting_for", "silent_for", "holds"),
    [(None, 99.0, False), (99.0, 0.1, False), (5.0, 99.0, False), (10.1, 10.1, True)],
)
def test_a_child_holds_the_database_if_renewals_wait_while_it_is_silent(
    waiting_for: float | None, silent_for: float, holds: bool
) -> None:
    assert holds_database(waiting_for, silent_for, 10.0) is holds


# -- the jobs of a dead child ----------------------------------------------------------------------------------


def after(cause: Cause, *lines: Line, told: frozenset[tuple[int, int]] = frozenset()) -> dict[int, str]:
    """The outcome of attempt 1 of each job, and of job 99, which has not begun; the child died at 100."""
    death = Death(100.0, "signal SIGKILL", cause, "why", {one.job_id: one for one in lines}, told)
    return {job_id: ending_after(death, job_id, 1)[0] for job_id in (*(one.job_id for one in lines), 99)}


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
def test_those_who_may_be_to_blame_are_tried_apart(cause: Cause) -> None:
    """J7: also where the supervisor ended the process: else the one that holds it would hold the next one too."""
    death = Death(100.0, "signal SIGKILL", cause, "why", {1: line(1), 2: line(2, ends=98.0)})
    assert all((ending_after(death, job_id, 1)[1] or "").startswith(_DIED) for job_id in (1, 2))


def test_a_cancel_is_obeyed_only_by_its_attempt() -> None:
    told = frozenset({(1, 1), (2, 2)})
    assert after("deaf", line(1), line(2), told=told) == {1: "cancelled", 2: "released", 99: "released"}


def test_what_is_stopped_with_its_worker_is_not_charged() -> None:
    assert after("stop", line(1, ends=98.0), line(2)) == {1: "released", 2: "released", 99: "released"}


def test_another_attempt_of_the_same_job_is_another_matter() -> None:
    death = Death(100.0, "signal SIGKILL", "itself", "", {1: line(1, attempt=2)})
    assert ending_after(death, 1, 1) == ("released", None)
