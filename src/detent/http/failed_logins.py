"""Limits how often a client address may send tokens that are not valid."""

from __future__ import annotations

import asyncio
import math
from collections import OrderedDict

__all__ = ["FailedLogins"]

_FAILURES_MAX = 10.0
"""Failures in a row that an address has free."""
_REFILL_SECONDS = 6.0
"""After this long, an address has one more."""
_ADDRESSES_MAX = 10_000


class FailedLogins:
    """A bucket of failures for each client address, in this process. The addresses that failed last are remembered."""

    def __init__(self) -> None:
        self._failures: OrderedDict[str, tuple[float, float, str]] = OrderedDict()
        """How many failures of an address count, at which time, and the hash of the last token."""

    def seconds_to_wait(self, address: str) -> int:
        """Return for how many seconds the address may not try again; 0 if it may try now."""
        excess = self._count(address) - (_FAILURES_MAX - 1)
        return max(0, math.ceil(excess * _REFILL_SECONDS))

    def note(self, address: str, token_hash: str) -> None:
        """Note a failure of the address. The same token again does not count: a page with an expired session sends it
        several times, and it guesses nothing."""
        count = self._count(address)
        _, _, last = self._failures.pop(address, (0.0, 0.0, ""))
        self._failures[address] = count + (last != token_hash), self._now(), token_hash
        if len(self._failures) > _ADDRESSES_MAX:
            self._failures.popitem(last=False)

    def _count(self, address: str) -> float:
        count, at, _ = self._failures.get(address, (0.0, 0.0, ""))
        return max(0.0, count - (self._now() - at) / _REFILL_SECONDS)

    def _now(self) -> float:
        return asyncio.get_running_loop().time()
