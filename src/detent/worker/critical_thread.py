"""Threads that a process of a worker cannot do without. If one fails, the process exits and is replaced."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable

__all__ = ["EXIT_BROKEN", "start_critical_thread"]

EXIT_BROKEN = 70
"""Exit code of a process in which a critical thread failed, for instance because memory ran out or of a defect."""

log = logging.getLogger("detent.worker")


def start_critical_thread(name: str, target: Callable[[], None]) -> threading.Thread:
    """Run `target` on a thread of its own and return the thread. If `target` raises, the process exits at once."""

    def run() -> None:
        try:
            target()
        except BaseException:
            # If memory has run out, even logging may fail.
            try:
                log.exception("Thread %s failed; this process exits.", name)
            finally:
                os._exit(EXIT_BROKEN)

    thread = threading.Thread(target=run, name=f"detent-{name}", daemon=True)
    thread.start()
    return thread
