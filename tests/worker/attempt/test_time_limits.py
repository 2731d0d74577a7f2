"""Time-outs of jobs whose process another job held for a while."""

from __future__ import annotations

import pytest

from detent.worker.attempt.time_limits import LoopLag, end_overdue, limit_extension

TICK = 0.1


def test_a_loop_is_late_by_what_it_was_kept_from_its_turn() -> None:
    lag = LoopLag(TICK)
    lag.restart(100.0)
    assert lag.measure(100.1) == 0.0
    assert lag.measure(100.25) == 0.0, "less than a tick is chance"
    assert lag.measure(103.35) == pytest.approx(3.0)
    assert lag.measure(103.45) == 0.0
    lag.restart(200.0)
    assert lag.measure(200.1) == 0.0, "a loop at rest is not late"


def test_time_in_which_the_process_was_held_does_not_count() -> None:
    """J12: up to the time-out again, or a minute: the job itself may be the one that holds the process."""
    assert limit_extension(5.0, 0.0, 3.0) == 3.0
    assert limit_extension(5.0, 58.0, 3.0) == 2.0
    assert limit_extension(5.0, 60.0, 3.0) == 0.0
    assert limit_extension(300.0, 60.0, 30.0) == 30.0
    assert limit_extension(300.0, 290.0, 30.0) == 10.0


def test_a_job_that_may_not_be_to_blame_is_not_charged() -> None:
    assert end_overdue(5.0, 0.0, idempotent=True)[0] == "timed_out"
    assert end_overdue(5.0, 59.0, idempotent=True)[0] == "timed_out", "all held time was forgiven"
    assert end_overdue(5.0, 60.0, idempotent=True)[::2] == ("released", True), "a suspect"
    assert end_overdue(5.0, 60.0, idempotent=False)[0] == "timed_out", "how far it came is not known"
