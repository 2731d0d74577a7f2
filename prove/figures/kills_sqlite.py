"""P1: SIGKILL at the statements of workers and clients on SQLite."""

from __future__ import annotations

from prove.figure import Budget, Tally
from prove.kills.sweep import sweep

__all__ = ["run"]


def run(budget: Budget) -> Tally:
    """Kill processes at every statement, before and after it, and then in pairs."""
    return sweep(budget, "sqlite", most=budget.count(commit=2_000, nightly=20_000, release=100_000))
