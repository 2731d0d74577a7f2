"""What becomes of the jobs of a child that died: decisions without processes."""

from __future__ import annotations

import pytest

from detent.store.contract import Store
from detent.worker.supervisor.board import BoardEntry
from detent.worker.supervisor.dead_child import DeadLease, Death, DeathCause, decide_ending, end_lease
from tests.contract.jobs.sample_jobs import claim, enqueue, job
from tests.contract.workflows.sample_workflows import record


def line(
    job_id: int, *, attempt: int = 1, begun: float = 0.0, ends: float = 0.0, here: int = 1, after: float = 0
) -> BoardEntry:
    return BoardEntry(job_id, attempt, begun, ends, here, after)


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
    assert all(decide_ending(death, job_id, 1)[2] for job_id in (1, 2)), "each is a suspect"


def test_a_cancel_is_obeyed_only_by_its_attempt() -> None:
    told = frozenset({(1, 1), (2, 2)})
    assert after("deaf", line(1), line(2), told=told) == {1: "cancelled", 2: "released", 99: "released"}


def test_what_is_stopped_with_its_worker_is_not_charged() -> None:
    assert after("stop", line(1, ends=98.0), line(2)) == {1: "released", 2: "released", 99: "released"}


def test_another_attempt_of_the_same_job_is_another_matter() -> None:
    death = Death(100.0, "signal SIGKILL", "itself", "", {1: line(1, attempt=2)})
    assert decide_ending(death, 1, 1) == ("released", None, False)


def test_what_has_ended_unrecorded_is_not_repeated_blindly(store: Store) -> None:
    """C5: the function of a job that must not be repeated had returned, and the child died before that was written. Its
    entry had left the board, so the job was released and called again."""
    ended, unbegun = (enqueue(store, idempotent=False) for _ in range(2))
    claim(store, lease_id=7, limit=2)
    store.job_start([(ended, 1)])
    end_lease(store, DeadLease(7, Death(100.0, "signal SIGKILL", "itself")), "ana")
    assert (job(store, ended).state, job(store, unbegun).state) == ("quarantined", "pending")
    assert "before it was on record" in (job(store, ended).error or "")


def test_a_cancelled_workflow_with_steps_to_undo_is_not_ended(store: Store) -> None:
    """F11, F20: its process was killed, since it did not stop, and the job ended as cancelled: nothing was undone."""
    plain, told, begun = (enqueue(store) for _ in range(3))
    held = {one.job_id: one for one in claim(store, lease_id=7, limit=3)}
    record(store, held[begun], undo=True)
    store.job_cancel([plain, told, begun], "ana")
    death = Death(
        100.0, "signal SIGKILL", "deaf", "why", {n: line(n) for n in held}, frozenset({(told, 1), (begun, 1)})
    )
    end_lease(store, DeadLease(7, death), "w")
    assert [job(store, one).state for one in (plain, told, begun)] == ["cancelled", "cancelled", "pending"]
    assert [store.job_executions(one)[0].outcome for one in (told, begun)] == ["cancelled", "released"]
