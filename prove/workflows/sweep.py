"""The workflows of `lives` as deeds: workers that run them are killed at every statement."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from detent.client.job import Job
from detent.testing.harness import Harness
from detent.testing.stores import plain_connection
from detent.workflow import child_operations
from prove.figure import Budget, Tally
from prove.kills import sweep as kills
from prove.kills.deed import Deed, Finding
from prove.kills.scene import Kind
from prove.workflows.lives import LEASE, LIVES, Calls, Life, declare
from prove.workflows.look import BOOKED, calls_of_recorded, look

__all__ = ["Stage", "small_portions", "sweep"]

_PORTION = 7
"""A group of children comes in four portions."""
_KILLS_MAX = 2
"""A pair of kills strikes twice."""


@dataclass
class _Lived:
    """A workflow, what its steps did outside the database, and how often those on record were called."""

    job: Job[Any]
    calls: Calls
    recorded: dict[str, int] | None = None


class Stage:
    """Prepares scenes. `calls` are those of the current scene."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._count = 0
        self.calls: Calls

    def prepare(self, harness: Harness) -> None:
        """Create the table of the user, and declare the workflows."""
        with closing(plain_connection(harness.url)) as connection:
            connection.execute(BOOKED)
            connection.commit()
        self._count += 1
        self.calls = Calls(self._folder / str(self._count))
        declare(harness, self.calls)

    def deed(self, life: Life) -> Deed:
        """Return a life as a deed. What the dead process did from outside is done again by those who go on."""

        def begin(harness: Harness) -> _Lived:
            return _Lived(harness.app.enqueue(harness.app.find_task(life.body).call()), self.calls)

        def go_on(harness: Harness, lived: _Lived) -> None:
            if lived.recorded is None:
                lived.recorded = calls_of_recorded(harness, lived.calls, life, lived.job)
            life.live(harness, lived.job)

        def look_at(harness: Harness, lived: _Lived) -> Iterator[Finding]:
            return look(harness, lived.calls, life, lived.job, lived.recorded or {}, kills=_KILLS_MAX)

        return Deed(
            begin,
            lambda harness, lived: life.live(harness, lived.job),
            look_at,
            go_on,
            pause=max(LEASE + 1, 2 * life.turns + 1),
        )


def sweep(
    budget: Budget,
    kind: Kind,
    names: Iterable[str] = LIVES,
    *,
    sides: tuple[bool, ...] = (False, True),
    pairs: bool = True,
    most: int = 1_000_000,
    findings_max: int = 30,
) -> Tally:
    """Kill at every statement of these workflows, until the budget is spent or, without pairs, all are done."""
    with small_portions(), tempfile.TemporaryDirectory(prefix="detent-lives-") as folder:
        stage = Stage(Path(folder))
        deeds = {name: stage.deed(LIVES[name]) for name in names}
        return kills.sweep(
            budget,
            kind,
            deeds,
            prepare=stage.prepare,
            faults=("SIGKILL",),
            sides=sides,
            pairs=pairs,
            most=most,
            findings_max=findings_max,
        )


@contextmanager
def small_portions() -> Iterator[None]:
    """Let groups of children come in portions that are small enough to be cut."""
    before = child_operations._PORTION
    child_operations._PORTION = _PORTION
    try:
        yield
    finally:
        child_operations._PORTION = before
