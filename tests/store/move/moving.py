"""Moves that are stopped on the way."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from detent.model.clock import SystemClock
from detent.model.move_records import MoveProgress
from detent.store.contract import Store
from detent.store.move.mover import Mover

__all__ = ["KINDS", "Stopped", "begun", "other", "stopped_at"]

KINDS = ("sqlite", "postgres")


class Stopped(Exception):
    """The program was stopped here."""


def stopped_at(step: str) -> Callable[[MoveProgress], None]:
    """Stop at the beginning of a step."""

    def watch(progress: MoveProgress) -> None:
        if progress.step.startswith(step):
            raise Stopped

    return watch


def other(kind: str) -> str:
    """The other kind of database."""
    return KINDS[1 - KINDS.index(kind)]


def begun(source: Store, target: Store) -> None:
    """Begin a move that has copied some of the tables."""
    with pytest.raises(Stopped):
        Mover(source, target, SystemClock(), actor="ana", watch=stopped_at("copy job_key")).run()
