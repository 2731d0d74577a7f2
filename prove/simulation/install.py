"""Put simulated threads, pipes, processes, random numbers and time into the modules of the package."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable
from concurrent import futures
from types import ModuleType, SimpleNamespace
from typing import Any

import detent.worker.attempt.attempt
import detent.worker.attempt.workflow.context
import detent.worker.child.process
import detent.worker.supervisor.process
from detent.model import ids
from detent.model.clock import SystemClock
from detent.store import enqueue_writer, group_writer, light_future
from detent.worker import critical_thread
from detent.worker.supervisor import child_process
from prove.simulation import event_loop, processes, threads
from prove.simulation.world import ProcessDied, world

__all__ = ["install"]

_LOADED = (enqueue_writer, light_future, detent.worker.attempt.workflow.context)
"""Modules that must be loaded before their threads are replaced."""
_REAL = ("detent.store.sqlite.", "detent.store.postgres.")
"""Packages that keep real threads: the database itself is not simulated."""


def install() -> None:
    """Replace them, for the life of this process."""
    everywhere: list[tuple[Any, Any]] = [
        (threading, threads),
        (SystemClock, lambda: world().clock),
        (futures.ThreadPoolExecutor, threads.Pool),
        (futures.wait, threads.wait),
        (critical_thread.start_critical_thread, threads.start_critical_thread),
        (group_writer.new_lock, threads.Lock),
    ]
    for name, module in list(sys.modules.items()):
        if name.startswith("detent.") and not name.startswith(_REAL):
            for attribute, found in list(vars(module).items()):
                for real, stand_in in everywhere:
                    if found is real:
                        setattr(module, attribute, stand_in)
    child, supervisor = detent.worker.child.process, detent.worker.supervisor.process
    no_signals: Callable[..., None] = lambda *_: None  # noqa: E731
    attempt = detent.worker.attempt.attempt
    _replace(attempt, asyncio=SimpleNamespace(run=event_loop.run, get_running_loop=asyncio.get_running_loop))
    _replace(child_process, Channel=processes.Channel, Board=processes.Board)
    _replace(child_process, GuardedProcess=processes.GuardedProcess)
    _replace(supervisor, WakeupPipe=processes.WakeupPipe)
    _replace(supervisor, signal=SimpleNamespace(signal=no_signals, pthread_sigmask=no_signals, SIG_UNBLOCK=0))
    _replace(child, os=SimpleNamespace(_exit=_exit, getpid=lambda: 1))
    _replace(ids, random=SimpleNamespace(SystemRandom=lambda: world().random, Random=lambda _=None: world().random))


def _replace(module: ModuleType, **stand_ins: Any) -> None:
    for name, stand_in in stand_ins.items():
        assert hasattr(module, name), f"{module.__name__} has no {name} any more"
        setattr(module, name, stand_in)


def _exit(code: int) -> None:
    """End the simulated process of the actor that calls."""
    me = world().current
    assert me is not None
    world().kill(me.process, code)
    raise ProcessDied
