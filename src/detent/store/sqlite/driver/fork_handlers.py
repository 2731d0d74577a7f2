"""Tell databases of forks.

SQLite keeps its locks per process. A child that inherits an open connection, or that opens the file while the parent
has it open, would believe that it holds locks, and the parent could delete the log under it.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Iterable
from typing import Protocol
from weakref import WeakSet

__all__ = ["never_close", "register"]


class Forkable(Protocol):
    """An object that is told of every fork."""

    def before_fork(self) -> None: ...

    def after_fork_in_parent(self) -> None: ...

    def after_fork_in_child(self) -> None: ...


_registered: WeakSet[Forkable] = WeakSet()
_fork = threading.local()
"""The objects that this thread told of its fork. Several threads may fork at once."""


def register(database: Forkable) -> None:
    """Tell this object of every fork for as long as it lives."""
    _registered.add(database)


def never_close(handles: Iterable[object]) -> None:
    """Leak these in a forked child: closing them would act on files and locks of the parent."""
    for handle in handles:
        if handle is not None:
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(handle))


def _before() -> None:
    # In one order, to avoid deadlocks: each waits for the writer of its database.
    _fork.told = sorted(_registered, key=id)
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
