"""P2: SIGKILL at the statements of workers and clients on PostgreSQL, and connections that the server ends."""

from __future__ import annotations

from prove.figure import Budget, Tally
from prove.kills.sweep import sweep

__all__ = ["run"]


def run(budget: Budget) -> Tally:
    """Kill processes, or end their connections, at every statement, before and after it, and then in pairs."""
    return sweep(budget, "postgres", most=budget.count(commit=2_000, nightly=10_000, release=20_000))
