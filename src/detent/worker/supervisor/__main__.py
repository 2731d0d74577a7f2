"""Entry point of a supervisor: a process that holds none of the user's code and imports little else.

Run as `python -m detent.worker.supervisor PIPE_FD`, with an `Assignment` as JSON in the pipe.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import msgspec

from detent.model.clock import SystemClock
from detent.store.open import open_store
from detent.worker.log_limit import share_log_limit
from detent.worker.output import set_up_output
from detent.worker.supervisor.assignment import Assignment
from detent.worker.supervisor.process import Supervisor
from detent.worker.supervisor.systemd_notifier import SystemdNotifier


@contextmanager
def importing_little() -> Iterator[None]:
    """What is imported meanwhile gets no `ssl` and no compression, as in a Python that was built without them, and
    learns nothing of the packages that are installed. A driver may bring asyncio, which no supervisor uses, and with it
    OpenSSL, 4 MB; its own TLS is its own. To say which version it is takes it `email`, 1.5 MB; what finds libraries on
    other systems can unpack archives, 0.3 MB. Whoever wants them after may have them."""
    instead: dict[str, Any] = {
        "ssl": None,
        "bz2": None,
        "lzma": None,
        "importlib.metadata": _NoMetadata("importlib.metadata"),
    }
    kept_out = [name for name in instead if name not in sys.modules]
    sys.modules.update({name: instead[name] for name in kept_out})
    try:
        yield
    finally:
        for name in kept_out:
            del sys.modules[name]


class _NoMetadata(ModuleType):
    """In place of `importlib.metadata`: nothing is known of any package."""

    class PackageNotFoundError(ModuleNotFoundError):
        """Always."""

    def version(self, name: str) -> str:
        """Refused."""
        raise self.PackageNotFoundError(name)


def _give_back() -> None:
    """What importing took for a moment goes back to the system, where the C library knows how."""
    if (trim := getattr(ctypes.CDLL(None), "malloc_trim", None)) is not None:
        trim(0)


def main() -> int:
    """Supervise until told to stop; return the exit code."""
    with os.fdopen(int(sys.argv[1]), "rb") as pipe:
        assignment = msgspec.json.decode(pipe.read(), type=Assignment)
    set_up_output(assignment.options.log_format, assignment.options.log_level)
    options = share_log_limit(assignment.options)
    clock = SystemClock()
    with importing_little():
        store = open_store(assignment.url, clock=clock)
    supervisor = Supervisor(
        store,
        options,
        clock,
        assignment.worker_id,
        SystemdNotifier(assignment.notify_socket),
        after_outage=assignment.after_outage,
        sinks=assignment.sinks,
    )
    _give_back()
    return supervisor.run()


if __name__ == "__main__":
    sys.exit(main())
