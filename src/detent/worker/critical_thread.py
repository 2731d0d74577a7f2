"""Threads that a worker cannot do without: a process that has lost one is better dead than deaf."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable

__all__ = ["EXIT_BROKEN", "start_critical_thread"]

EXIT_BROKEN = 70
"""What a process ends with whose own machinery failed (memory ran out, a defect): it is replaced by a fresh one."""

log = logging.getLogger("detent.worker")


def start_critical_thread(name: str, target: Callable[[], None]) -> threading.Thread:
    """Run it on a thread of its own; if it raises, the process ends at once."""

    def run() -> None:
        try:
            target()
        except BaseException:
            # Even saying so may fail where memory has run out.
            try:
                log.exception("%s failed: this process ends", name)
            finally:
                os._exit(EXIT_BROKEN)

    thread = threading.Thread(target=run, name=f"detent-{name}", daemon=True)
    thread.start()
    return thread
