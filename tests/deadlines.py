"""Deadlines of tests, scaled by how slow this machine is while the tests run.

A test waits for a condition and fails at a deadline. A deadline that is right on a quiet machine is too short on a busy
one, so each deadline is multiplied by a factor. The run measures the factor once, when it starts, and hands it to all
its processes in the environment. The leases and grace periods of workers under test are scaled in the same way.
"""

from __future__ import annotations

import functools
import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import TypeVar

__all__ = ["SLOWNESS", "factor", "is_measured", "measure", "scaled", "until"]

SLOWNESS = "TESTS_SLOWNESS"
"""The environment variable with the factor; set it by hand for a machine that becomes busy later."""

_WORK = """
import hashlib, sys, time
block = b"x" * 4096
began = time.perf_counter()
for _ in range({rounds}):
    hashlib.sha256(block).digest()
    sum(range(200))
print(time.perf_counter() - began)
"""
_ROUNDS = 80_000
_QUIET_SECONDS = 0.35
"""How long one process takes for its rounds on a quiet machine with two cores of 2024."""
_FACTOR_MAX = 10.0
_PAUSE = 0.02

T = TypeVar("T")


def measure() -> float:
    """Return how many times slower than a quiet machine this one is: at least 1, at most 10.

    As many processes as there are cores work at once, each for about a third of a second if nothing else runs.
    """
    command = [sys.executable, "-c", _WORK.format(rounds=_ROUNDS)]
    cores = os.cpu_count() or 1
    workers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(cores)]
    slowest = max(float(worker.communicate()[0]) for worker in workers)
    return min(_FACTOR_MAX, max(1.0, slowest / _QUIET_SECONDS))


def is_measured() -> bool:
    """Return whether the factor is in the environment already."""
    return SLOWNESS in os.environ


@functools.cache
def factor() -> float:
    """Return the factor of this run."""
    return max(1.0, float(os.environ.get(SLOWNESS, "1")))


def scaled(seconds: float) -> float:
    """Return a deadline for this machine, given one for a quiet machine."""
    return seconds * factor()


def until(look: Callable[[], T], what: str = "the condition", seconds: float = 60.0, pause: float = _PAUSE) -> T:
    """Return what `look` gives as soon as it is true. Fail if that takes longer than `seconds` on a quiet machine."""
    deadline = time.monotonic() + scaled(seconds)
    while True:
        found = look()
        if found:
            return found
        if time.monotonic() > deadline:
            raise AssertionError(f"{what} was not met within {scaled(seconds):g} s; last seen: {found!r}")
        time.sleep(pause)
