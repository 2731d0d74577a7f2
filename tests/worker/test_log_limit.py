"""At most two lines in two seconds for one cause, over all processes of a worker."""

from __future__ import annotations

import logging
import re
import subprocess
import sys
from pathlib import Path

import detent
from detent.model.clock import TurnableClock
from detent.worker.log_limit import DAMAGE, DATABASE, LOGGERS, SECONDS, LogLimit

SAYS = """
import logging, sys
from detent.worker.log_limit import limit_log
from detent.worker.options import WorkerOptions

logging.basicConfig(stream=sys.stdout, format="%(message)s")
limit_log(WorkerOptions(app="shop:app", name="w", log_limit_fd=int(sys.argv[1])))
for n in range(20):
    logging.getLogger("detent.worker").warning("claiming failed: %d", n)
    logging.getLogger("shop").warning("my own line")
"""


class Lines(logging.Handler):
    """Keeps what gets through."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


class Limited:
    """A logger under a limit whose clock is turned by hand."""

    def __init__(self) -> None:
        self.clock = TurnableClock()
        self.log = logging.Logger("detent.worker")
        self.log.addFilter(LogLimit.create(self.clock))
        self._heard = Lines()
        self.log.addHandler(self._heard)

    def heard(self) -> list[str]:
        lines, self._heard.lines = self._heard.lines, []
        return lines


def test_two_lines_in_two_seconds_and_the_next_says_how_many_were_left_out() -> None:
    """G6: log rate has a limit."""
    limited = Limited()
    for n in range(5):
        limited.log.warning("claiming failed: %d", n)
    assert limited.heard() == ["claiming failed: 0", "claiming failed: 1"]
    limited.clock.advance(SECONDS)
    limited.log.warning("claiming failed: %d", 5)
    assert limited.heard() == ["claiming failed: 5 (3 similar lines left out)"]


def test_no_second_has_more_than_two_lines_and_a_long_time_one_a_second() -> None:
    """G6"""
    limited = Limited()
    seconds: list[int] = []
    for _ in range(100):
        for _ in range(10):
            limited.log.warning("claiming failed")
            limited.clock.advance(0.1)
        seconds.append(len(limited.heard()))
    assert max(seconds) <= 2
    assert sum(seconds) <= 101


def test_causes_do_not_silence_each_other() -> None:
    """G6: a loop that fails must not hide another failure; calls may name a cause they share."""
    limited = Limited()
    for _ in range(10):
        limited.log.warning("claiming failed", extra=DATABASE)
        limited.log.warning("writing failed", extra=DATABASE)
        limited.log.error("schedule %s cannot be read", "nightly")
    unreadable = "schedule nightly cannot be read"
    assert limited.heard() == ["claiming failed", "writing failed", unreadable, unreadable]


def test_more_causes_than_there_is_room_for_are_all_heard() -> None:
    """G6: memory is bounded too; the cause that was quiet for the longest time is forgotten."""
    limited = Limited()
    for n in range(1000):
        limited.log.warning("alert", extra={"cause": f"alert {n}"})
        limited.clock.advance(SECONDS)
    assert len(limited.heard()) == 1000


def test_processes_of_one_worker_count_together() -> None:
    """G6: each process had its own limit, so a worker with many children said the same thing many times a second."""
    limit = LogLimit.create()
    running = [
        subprocess.Popen(
            [sys.executable, "-c", SAYS, str(limit.fileno)], pass_fds=[limit.fileno], stdout=subprocess.PIPE, text=True
        )
        for _ in range(3)
    ]
    said = [line for process in running for line in process.communicate()[0].splitlines()]
    ours = [line for line in said if "claiming" in line]
    # They do not start at the same moment: each may find that two seconds have passed.
    assert 2 <= len(ours) <= 6
    left_out = sum(int(found[1]) for line in ours if (found := re.search(r"\((\d+) similar", line)))
    assert len(ours) == 2 or left_out
    assert len(said) - len(ours) == 60


def test_every_logger_of_detent_is_limited() -> None:
    """G6: a new logger must not escape the limit."""
    source = Path(detent.__file__).parent
    used = {
        name
        for path in source.rglob("*.py")
        for name in re.findall(r"""getLogger\(["'](detent\.[\w.]*)["']\)""", path.read_text())
    }
    assert used == set(LOGGERS)


def test_damage_is_said_in_one_line_at_a_time() -> None:
    """Every service that meets a damaged page says the same, and an alert comes with it."""
    limited = Limited()
    limited.log.error("service heartbeat failed", extra=DAMAGE)
    limited.log.error("service schedules failed", extra=DAMAGE)
    limited.log.error("invariant storage_is_sound does not hold", extra=DAMAGE)
    assert limited.heard() == ["service heartbeat failed"]
    limited.clock.advance(SECONDS)
    limited.log.error("service schedules failed", extra=DAMAGE)
    assert limited.heard() == ["service schedules failed (2 similar lines left out)"]
