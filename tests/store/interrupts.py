"""An exception at any line of some module, as if a signal handler had raised there."""

from __future__ import annotations

import linecache
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


class Interrupted(BaseException):
    """What Ctrl-C would be."""


class Interrupt:
    """Raises at the `nth` line that this thread enters in one of the modules. The end of a `with` and the line of a
    `try` are left out: Python does not let signals in there."""

    def __init__(self, nth: int, modules: tuple[str, ...]) -> None:
        self._left = nth
        self._modules = modules
        self.fired_at: str | None = None

    def __call__(self, frame: FrameType, event: str, _: Any) -> Any:
        if not frame.f_code.co_filename.endswith(self._modules):
            return None
        if event == "line" and self.fired_at is None:
            line = linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip()
            if not line.startswith(("with ", "try:")):
                self._left -= 1
                if self._left == 0:
                    self.fired_at = f"{frame.f_code.co_name}: {line}"
                    raise Interrupted
        return self


@contextmanager
def interrupted_at(nth: int, *modules: str) -> Iterator[Interrupt]:
    """Let this thread be interrupted at that line, once, inside the block; the exception ends here."""
    interrupt = Interrupt(nth, modules)
    before = sys.gettrace()
    sys.settrace(interrupt)
    try:
        yield interrupt
    except Interrupted:
        pass
    finally:
        sys.settrace(before)
