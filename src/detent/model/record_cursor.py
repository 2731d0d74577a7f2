"""A reader's place in the record: which line numbers it has still to see.

Lines are numbered when they are written and become visible when their transaction commits, which may be in another
order. So a place is a list of ranges: the numbers above the highest line that was read, and below it the numbers that
open transactions may still fill. As text, `17` continues after line 17, and `17~12~14.15` wants lines 12, 14 and 15 too
if they appear.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct

from detent.errors import InvalidInput

__all__ = ["LAST_NUMBER", "RANGES_MAX", "RecordCursor"]

LAST_NUMBER = 2**63 - 1
RANGES_MAX = 200
"""Maximum number of ranges. A reader waits rather than remember more of them."""
_TEXT = re.compile(r"\d{1,18}(~\d{1,18}(\.\d{1,18})?)*")
_TEXT_MAX = RANGES_MAX * 40

Range = tuple[int, int]


class RecordCursor(Struct, frozen=True):
    """The numbers that a reader has still to see: ranges in order. The last one has no end."""

    ranges: tuple[Range, ...] = ((1, LAST_NUMBER),)

    @classmethod
    def after(cls, n: int) -> RecordCursor:
        """Return the place after line `n`, with all lines before it seen or given up."""
        return cls(((n + 1, LAST_NUMBER),))

    @classmethod
    def parse(cls, text: str) -> RecordCursor:
        """Return the place that a text says. `InvalidInput`."""
        if len(text) > _TEXT_MAX or not text.isascii() or _TEXT.fullmatch(text) is None:
            raise InvalidInput("after", repr(text[:80]), "the cursor of a line or of a page, or 0 for the beginning")
        seen, *gaps = text.split("~")
        ranges: list[Range] = []
        for gap in gaps:
            low, _, high = gap.partition(".")
            ranges.append((int(low), int(high or low)))
        ranges.append((int(seen) + 1, LAST_NUMBER))
        if not _is_ascending(ranges):
            raise InvalidInput("after", repr(text[:80]), "the cursor of a line or of a page, or 0 for the beginning")
        return cls(tuple(ranges))

    @property
    def text(self) -> str:
        """The place as text."""
        *gaps, last = self.ranges
        parts = [str(last[0] - 1), *(str(low) if low == high else f"{low}.{high}" for low, high in gaps)]
        return "~".join(parts)

    @property
    def last_seen(self) -> int:
        """The highest number that is seen or given up."""
        return self.ranges[-1][0] - 1

    def wants(self, n: int) -> bool:
        """Return whether line `n` has still to be seen."""
        return any(low <= n <= high for low, high in self.ranges)

    def past(self, n: int, decided: int) -> RecordCursor:
        """Return the place after line `n` was seen, and all lines below it that were there. Numbers up to `decided` get
        no further lines."""
        given_up = min(n, decided)
        kept: list[Range] = []
        for low, high in self.ranges:
            low = max(low, given_up + 1)
            if low <= n <= high:
                kept += [(low, n - 1), (n + 1, high)]
            else:
                kept.append((low, high))
        return RecordCursor(tuple(one for one in kept if one[0] <= one[1]))

    def through(self, top: int, decided: int) -> RecordCursor:
        """Return the place after every line up to `top` that was there was seen."""
        given_up = min(top, decided)
        kept = [(max(low, given_up + 1), high) for low, high in self.ranges]
        return RecordCursor(tuple(one for one in kept if one[0] <= one[1]))


def _is_ascending(ranges: Sequence[Range]) -> bool:
    bounds = [bound for one in ranges for bound in one]
    return bounds[0] > 0 and all(low <= high for low, high in ranges) and bounds == sorted(bounds)
