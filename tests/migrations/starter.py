"""A process that makes a database ready. Run as a module; it talks in lines.

starter URL many N     N copies of it make it ready at once, and each says an id of its own
starter URL count      makes it ready and says how many statements that took
starter URL die N      is killed while it makes the database ready, after its Nth statement
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from contextlib import closing
from types import FrameType
from typing import Any

from detent.store.open import open_store

FIRST = os.getpid()


class StatementCounter:
    """Counts calls of anything named execute, whichever driver's it is, by listening to the interpreter itself."""

    def __init__(self, last: int | None) -> None:
        self.seen = 0
        self._last = last

    def __call__(self, frame: FrameType, happened: str, what: Any) -> None:
        ended = happened == "return" and frame.f_code.co_name == "execute"
        if ended or (happened == "c_return" and getattr(what, "__name__", "") == "execute"):
            self.seen += 1
            if self.seen == self._last:
                os.kill(os.getpid(), signal.SIGKILL)

    def listen(self) -> None:
        """From here on, in this thread and in those to come."""
        threading.setprofile(self)
        sys.setprofile(self)


def main(url: str, task: str, last: str | None = None) -> None:
    """Do as told by the command line."""
    if task == "many":
        many(url, int(last or 1))
        return
    with closing(open_store(url)) as store:
        counter = StatementCounter(int(last) if last else None)
        counter.listen()
        store.ready()
        sys.setprofile(None)
        _say(str(counter.seen))


def many(url: str, processes: int) -> None:
    """Start processes that begin at the same time. This one exits with 0 if all of them did."""
    waits, go = os.pipe()
    pids = [os.fork() for _ in range(processes) if os.getpid() == FIRST]
    if os.getpid() == FIRST:
        os.close(waits)
        os.close(go)
        sys.exit(sum(1 for pid in pids if os.waitpid(pid, 0)[1]))
    os.close(go)
    os.read(waits, 1)
    with closing(open_store(url)) as store:
        store.ready()
        _say(str(store.ids_reserve(1)))


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
