"""What a supervisor is told to do, and how a command hands it over and becomes that supervisor."""

from __future__ import annotations

import os
import signal
import sys
from typing import NoReturn

import msgspec

from detent.alerts.sink_options import SinkOptions
from detent.worker.options import WorkerOptions
from detent.worker.supervisor.process import STOP_SIGNALS

__all__ = ["Assignment", "become_supervisor"]


class Assignment(msgspec.Struct, frozen=True):
    """What a supervisor needs to start. The url and the sinks may hold secrets, so they never go on a command line."""

    options: WorkerOptions
    url: str
    worker_id: int
    after_outage: bool
    notify_socket: str | None
    sinks: SinkOptions = SinkOptions()


def become_supervisor(assignment: Assignment) -> NoReturn:
    """Replace this process with a supervisor. The memory of the command, application included, is released."""
    reading, writing = os.pipe()
    os.set_inheritable(reading, True)
    with os.fdopen(writing, "wb") as pipe:
        pipe.write(msgspec.json.encode(assignment))
    sys.stdout.flush()
    sys.stderr.flush()
    # The signal mask survives the exec, so a stop signal that arrives before the supervisor is set up stays pending.
    signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
    os.execv(sys.executable, [sys.executable, "-m", "detent.worker.supervisor", str(reading)])
