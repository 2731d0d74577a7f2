"""The port for ids and randomness.

Ids are 64-bit integers that a client reserves in blocks, so that the caller knows an id before the insert and a retry
after a lost connection cannot insert twice. The nonce tells one client process from another: a repeated id must come
with the nonce it was first used with.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

from detent.errors import InvalidInput
from detent.model import fork_count

__all__ = ["Ids", "Random", "ReservedIds", "SeededIds", "new_file_token", "new_move_id", "new_token"]

Random = random.Random
"""A source of random numbers that are the same for the same seed."""

_NONCE_BITS = 63
_BLOCKS_MAX = 16
"""Each reservation is larger than the one before, up to this many blocks, since each costs a round trip and a sync."""


def new_token() -> str:
    """Return a new token for the HTTP API, with 256 random bits. The prefix lets scanners of secrets find it."""
    import secrets  # not loaded into every worker

    return f"dtn_{secrets.token_urlsafe(32)}"


def new_move_id() -> str:
    """Return a name for a move of a database that no other move has."""
    import secrets  # not loaded into every worker

    return secrets.token_hex(16)


class Ids(Protocol):
    """Reserved ids, the nonce of this client, and random numbers."""

    def take(self, count: int = 1) -> list[int]:
        """Return that many ids, ascending and never handed out before."""
        ...

    def left(self) -> int:
        """Return how many ids can be taken without a query."""
        ...

    def nonce(self) -> int:
        """Return a random number below 2^63 that stays the same for the life of this process."""
        ...

    def random(self) -> float:
        """Return a random number in [0, 1)."""
        ...


class ReservedIds:
    """Ids reserved from a store in blocks.

    `reserve(n)` reserves n consecutive ids durably and returns the first. Each reservation is twice as large as the one
    before, up to a maximum; a take that needs more than that reserves exactly what it needs. After a fork the child
    drops the block, the nonce and the random sequence of its parent. Callers on several threads pass a `lock`. If
    `reserve` raises, nothing was taken. `seed` fixes the random numbers only.
    """

    def __init__(
        self,
        reserve: Callable[[int], int],
        block: int = 1000,
        *,
        lock: AbstractContextManager[Any] | None = None,
        seed: int | None = None,
    ) -> None:
        if block < 1:
            raise InvalidInput("block", str(block), "1 or more")
        self._reserve = reserve
        self._block = block
        self._lock = lock if lock is not None else nullcontext()
        self._seed = seed
        self._start_afresh()

    def _start_afresh(self) -> None:
        self._rest = range(0)
        self._size = self._block
        self._nonce = random.SystemRandom().getrandbits(_NONCE_BITS)
        self._random = random.Random(self._seed)
        self._forks = fork_count.count  # last: a thread that reads it without the lock sees the rest too

    def _follow_fork(self) -> None:
        if fork_count.count != self._forks:
            self._start_afresh()

    def take(self, count: int = 1) -> list[int]:
        _check_count(count)
        with self._lock:
            self._follow_fork()
            taken = list(self._rest[:count])
            missing = count - len(taken)
            if not missing:
                self._rest = self._rest[count:]
                return taken
            size = max(missing, self._size)
            first = self._reserve(size)
            self._size = min(2 * self._size, _BLOCKS_MAX * self._block)
            fresh = range(first, first + size)
            self._rest = fresh[missing:]
            return [*taken, *fresh[:missing]]

    def left(self) -> int:
        return len(self._rest) if fork_count.count == self._forks else 0

    def nonce(self) -> int:
        if fork_count.count != self._forks:
            with self._lock:
                self._follow_fork()
        return self._nonce

    def random(self) -> float:
        with self._lock:
            self._follow_fork()
            return self._random.random()


class SeededIds:
    """The same ids, nonce and random numbers for the same seed: for tests and simulations."""

    def __init__(self, seed: int, start: int = 1) -> None:
        self._random = random.Random(seed)
        self._nonce = self._random.getrandbits(_NONCE_BITS)
        self._next = start

    def take(self, count: int = 1) -> list[int]:
        _check_count(count)
        first = self._next
        self._next += count
        return list(range(first, self._next))

    def left(self) -> int:
        return 2**62 - self._next

    def nonce(self) -> int:
        return self._nonce

    def random(self) -> float:
        return self._random.random()


def _check_count(count: int) -> None:
    if count < 0:
        raise InvalidInput("count", str(count), "zero or more")


def new_file_token() -> str:
    """Return a part of a file's name that no other file has."""
    import secrets  # not loaded into every worker

    return secrets.token_hex(6)
