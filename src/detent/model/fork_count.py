"""Counts the forks between the first process and this one.

A copy of a process must not use what belongs to the original: ids, leases, connections. To find out whether it is one,
code remembers `forks.count` and compares. That costs nothing, while `os.getpid` is a system call, which would be a good
part of the time of a short job.
"""

from __future__ import annotations

import os

__all__ = ["count"]

count = 0
"""Compare it with an earlier value: a different one means that this process is a copy made since then."""


def _add_one() -> None:
    global count
    count += 1


os.register_at_fork(after_in_child=_add_one)
