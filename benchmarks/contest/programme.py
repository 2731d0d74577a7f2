"""All works by name, and how often each is done."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.contest import console, crowds, workflow_waits, workflows, works
from benchmarks.contest.arena import Arena
from benchmarks.contest.works import Size, Values

__all__ = ["BRIEF", "GROUPS", "ROUNDS_MAX", "USUAL", "WORKS"]

WORKS: dict[str, Callable[[Arena, Size], Values | list[Values]]] = {
    "one": works.one,
    "callers": works.callers,
    "bulk": works.bulk,
    "drain": works.drain,
    "drain by two": works.drain_by_two,
    "writes": works.writes,
    "pipeline": works.pipeline,
    "batch": works.batch,
    "pick-up": works.pick_up,
    "inside": works.inside,
    "snapshot": works.snapshot,
    "memory": works.memory,
    "idle": works.idle,
    "tenants": crowds.tenants,
    "keys": crowds.keys,
    "retention": crowds.beside_retention,
    "console": console.open_console,
    "filled": crowds.filled,
    "steps": workflows.steps,
    "crowd": workflows.crowd,
    "transact": workflows.transact,
    "whole of 1": workflows.whole_of_one,
    "whole of 10": workflows.whole_of_ten,
    "signals": workflow_waits.signals,
    "fan-out": workflow_waits.fan_out,
    "long history": workflow_waits.long_history,
    "sleepers": workflow_waits.sleepers,
    "wake-ups": workflow_waits.wake_ups,
}
WORKFLOWS = (
    *("writes", "steps", "crowd", "transact", "whole of 1", "whole of 10", "signals", "fan-out", "long history"),
    *("sleepers", "wake-ups"),
)
"""What the rows about workflows need."""
GROUPS = {"workflows": WORKFLOWS}
"""Works that can be asked for together."""
USUAL = tuple(name for name in WORKS if name != "filled")
"""What a contest has unless told otherwise."""
BRIEF = tuple(name for name in USUAL if name not in ("snapshot", "tenants", "keys", "retention", "console"))
"""What a quick one has: the others show something only after more jobs than it has time for."""
ROUNDS_MAX = {
    "snapshot": 3,
    "batch": 3,
    "memory": 1,
    "idle": 1,
    "tenants": 3,
    "keys": 3,
    "retention": 1,
    "console": 1,
    "filled": 1,
    "steps": 3,
    "crowd": 3,
    "transact": 3,
    "whole of 1": 3,
    "whole of 10": 3,
    "signals": 3,
    "fan-out": 3,
    "long history": 3,
    "sleepers": 1,
    "wake-ups": 1,
}
"""Long ones, and those that hardly spread, are not done in every round."""
