"""The floor of steps as a contender. One workflow: claim, an INSERT with the holder's check and a COMMIT for each step,
finish. Many: the same with up to 500 of them in each transaction, and nothing around it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

from benchmarks.contenders import board, floor, program
from benchmarks.floor_steps_postgres import PostgresStepFloor
from benchmarks.floor_steps_postgres import make_steps as make_postgres
from benchmarks.floor_steps_sqlite import SqliteStepFloor
from benchmarks.floor_steps_sqlite import make_steps as make_sqlite
from benchmarks.sides import BATCH, drain

COUNTS_STEPS = program.WORK == "crowd"
"""Whether steps are counted, or workflows."""


class _Grouped(AbstractContextManager[Any]):
    """Records all steps of a batch before it finishes it."""

    def __init__(self, side: PostgresStepFloor | SqliteStepFloor) -> None:
        self._side = side

    def jobs(self, first: int, count: int) -> Sequence[Any]:
        return self._side.jobs(first, count)

    def enqueue(self, jobs: Sequence[Any]) -> None:
        self._side.enqueue(jobs)

    def claim(self) -> Sequence[Any]:
        return self._side.claim()

    def finish(self, batch: Sequence[Any]) -> None:
        for number in range(1, program.STEPS + 1):
            if COUNTS_STEPS:
                board.marks(len(batch))
            self._side.step(batch, number)
        self._side.finish(batch)

    def succeeded(self) -> int:
        return self._side.succeeded()

    def __exit__(self, *error: object) -> None:
        self._side.__exit__(None, None, None)


def opened(batch: int) -> PostgresStepFloor | SqliteStepFloor:
    """On whichever database it is."""
    return (PostgresStepFloor if floor.IS_POSTGRES else SqliteStepFloor)(program.URL, batch)


def prepare(count: int) -> None:
    """Schema."""
    (make_postgres if floor.IS_POSTGRES else make_sqlite)(program.URL)


def enqueue(count: int) -> program.Answer:
    """Workflows are jobs like others."""
    return floor.enqueue(count, program.BULK)


def one_workflow() -> None:
    """Measures each of its steps."""
    with opened(1) as side:
        batch = side.claim()
        times = []
        for number in range(1, program.STEPS + 1):
            began = time.perf_counter()
            side.step(batch, number)
            times.append(time.perf_counter() - began)
        side.finish(batch)
    board.measured(times)
    board.mark()


def work(processes: int) -> None:
    """Until a claim comes back empty."""
    if program.WORK == "steps":
        one_workflow()
        return
    with _Grouped(opened(BATCH)) as side:
        drain(side, overlap=floor.IS_POSTGRES, took=_not_counted if COUNTS_STEPS else board.marks)


def _not_counted(count: int) -> None:
    """Steps are counted instead."""


if __name__ == "__main__":
    program.serve(
        {
            "prepare": prepare,
            "steps": lambda count: enqueue(1),
            "crowd": enqueue,
            "whole": enqueue,
            "work": work,
        }
    )
