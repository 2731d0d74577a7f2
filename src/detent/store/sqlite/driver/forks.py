"""Databases and forks.

SQLite keeps its locks per process: a child that inherits an open connection, or merely opens the same file while it has
one, believes in locks that it does not hold, and the parent may delete the log under it.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Iterable
from typing import Protocol
from weakref import WeakSet

__all__ = ["abandon", "watch"]


class Forkable(Protocol):
    """What wants to know of forks."""

    def before_fork(self) -> None: ...

    def after_fork_in_parent(self) -> None: ...

    def after_fork_in_child(self) -> None: ...


_watched: WeakSet[Forkable] = WeakSet()
_fork = threading.local()
"""What this thread told of its fork. Several threads may fork at once, and each tells what it told before."""


def watch(database: Forkable) -> None:
    """Tell this one of every fork for as long as it lives."""
    _watched.add(database)


def abandon(handles: Iterable[object]) -> None:
    """Never close these in this process: closing would act on files and locks that are the parent's."""
    for handle in handles:
        if handle is not None:
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(handle))


def _before() -> None:
    # In one order, since each waits for the writer of its database.
    _fork.told = sorted(_watched, key=id)
    for database in _fork.told:
        database.before_fork()


def _in_parent() -> None:
    for database in _fork.told:
        database.after_fork_in_parent()
    _fork.told = []


def _in_child() -> None:
    for database in _fork.told:
        database.after_fork_in_child()
    _fork.told = []


os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)
