"""The supervisor as a process of its own: it has none of the user's code in it, and little else.

Run as `python -m detent.worker.supervise PIPE_FD`, in place of the command that has looked whether all is well.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any, NoReturn

import msgspec

from detent.alerts.options import SinkOptions
from detent.model.clock import SystemClock
from detent.store.open import open_store
from detent.worker.log_limit import share_log_limit
from detent.worker.notify import Notify
from detent.worker.options import WorkerOptions
from detent.worker.output import set_up_output
from detent.worker.supervisor import STOPPING, Supervisor

__all__ = ["Charge", "become_supervisor", "importing_little"]


class Charge(msgspec.Struct, frozen=True):
    """What a supervisor is charged with. The url and the sinks may hold secrets, so they are on no command line."""

    options: WorkerOptions
    url: str
    worker_id: int
    after_outage: bool
    notify_socket: str | None
    sinks: SinkOptions = SinkOptions()


def become_supervisor(charge: Charge) -> NoReturn:
    """This process goes on as a supervisor, and what it was until now is gone from memory."""
    reading, writing = os.pipe()
    os.set_inheritable(reading, True)
    with os.fdopen(writing, "wb") as pipe:
        pipe.write(msgspec.json.encode(charge))
    sys.stdout.flush()
    sys.stderr.flush()
    # A stop that comes before the supervisor can hear it waits until it can: the mask outlives the exec.
    signal.pthread_sigmask(signal.SIG_BLOCK, STOPPING)
    os.execv(sys.executable, [sys.executable, "-m", "detent.worker.supervise", str(reading)])


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
    """Until told to stop; the exit code."""
    with os.fdopen(int(sys.argv[1]), "rb") as pipe:
        charge = msgspec.json.decode(pipe.read(), type=Charge)
    set_up_output(charge.options.log_format, charge.options.log_level)
    options = share_log_limit(charge.options)
    clock = SystemClock()
    notify = Notify(charge.notify_socket)
    with importing_little():
        store = open_store(charge.url, clock=clock)
    supervisor = Supervisor(
        store,
        options,
        clock,
        charge.worker_id,
        notify,
        after_outage=charge.after_outage,
        sinks=charge.sinks,
    )
    _give_back()
    return supervisor.run()


if __name__ == "__main__":
    sys.exit(main())
