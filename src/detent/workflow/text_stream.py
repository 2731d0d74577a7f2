"""`ctx.stream`: text for people, such as the words of a model while it answers.

A stream is no step. Its text becomes events of the job with the level `stream`, which name their attempt: a reader that
sees a new attempt starts over. The worker joins short pieces before it writes them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from detent.errors import InvalidInput

__all__ = ["StreamBudget", "TextStream"]

_RATE = 64 * 1024
"""Bytes per second, of all streams of an attempt together."""
_BURST = 4 * _RATE
_PIECE_MAX = 16 * 1024
_LEFT_OUT = f"\n[text left out: more than {_RATE // 1024} KB per second]\n"


class StreamBudget:
    """How many bytes the streams of an attempt may still write, and the numbers of their lines."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._left = float(_BURST)
        self._at = monotonic()
        self._number = 0

    def take(self, size: int) -> bool:
        """Take so many bytes; return whether they were there."""
        now = self._monotonic()
        self._left, self._at = min(float(_BURST), self._left + (now - self._at) * _RATE), now
        if size > self._left:
            return False
        self._left -= size
        return True

    def number(self) -> int:
        """Return the number of the next line. Two lines with the same text are two lines."""
        self._number += 1
        return self._number


class TextStream:
    """See `detent.Stream` for what each name promises."""

    def __init__(self, name: str, budget: StreamBudget, write: Callable[[str, str, int], None]) -> None:
        self.name = name
        self._budget = budget
        self._write = write
        self._is_full = False

    def write(self, text: str) -> None:
        """Append text."""
        if not isinstance(text, str):
            raise InvalidInput("text", repr(text)[:80], "text")
        for piece in _pieces(text):
            if self._budget.take(len(piece.encode(errors="replace"))):
                self._is_full = False
                self._write(self.name, piece, self._budget.number())
            elif not self._is_full:
                self._is_full = True
                self._write(self.name, _LEFT_OUT, self._budget.number())


def _pieces(text: str) -> Iterator[str]:
    """Yield the text in pieces of at most 16 KB."""
    letters = _PIECE_MAX // 4
    if len(text) <= letters:
        if text:
            yield text
        return
    for start in range(0, len(text), letters):
        yield text[start : start + letters]
