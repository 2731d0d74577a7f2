"""What is done with workflows that only take steps: one of them, many at once, whole ones, steps that write a row."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.contest.arena import Arena
from benchmarks.contest.works import Size, Values, drained

__all__ = ["crowd", "measured_steps", "percentile", "steps", "transact", "whole_of_one", "whole_of_ten"]

TEN = 10
SLOTS = 16
MANY_SLOTS = 200


def steps(arena: Arena, size: Size) -> Values:
    """One workflow of many no-op steps, which measures each of them; Detent's and the peers' also as an async one."""
    count = min(size.workflows.steps, arena.contender.most)
    reached = _of_times(measured_steps(arena, count))
    if arena.contender.name == "floor":
        return reached
    return {**reached, "async_per_second": _of_times(measured_steps(arena, count, is_async=True))["per_second"]}


def measured_steps(arena: Arena, count: int, is_async: bool = False) -> Sequence[float]:
    """Seconds that each step has taken, in their order."""
    settings = {"BENCH_WORK": "steps", "BENCH_STEPS": str(count), "BENCH_ASYNC": "1" if is_async else ""}
    arena.new_board()
    arena.run("steps", count, **settings)
    with arena.working(1, **settings) as tree:
        arena.wait_for(1, tree)
    return arena.board.samples()


def _of_times(times: Sequence[float]) -> Values:
    in_order = sorted(times)
    return {
        "per_second": len(times) / sum(times),
        "p50_ms": 1e3 * percentile(in_order, 0.5),
        "p99_ms": 1e3 * percentile(in_order, 0.99),
    }


def percentile(in_order: Sequence[float], part: float) -> float:
    """That part of the sorted values is not above it."""
    return in_order[int(len(in_order) * part)]


def crowd(arena: Arena, size: Size) -> Values:
    """Workflows that all run at once in one process, until the last has ended; what counts is their steps."""
    many = size.workflows.at_once
    each = max(1, min(many * size.workflows.each, 2 * arena.contender.most) // many)
    settings = {"BENCH_WORK": "crowd", "BENCH_STEPS": str(each), "BENCH_SLOTS": str(many)}
    arena.run("crowd", many, **settings)
    return drained(arena, many * each, settings=settings)


def transact(arena: Arena, size: Size) -> Values:
    """Steps that each write one row in the transaction that records them, 16 workflows at once."""
    total = min(size.workflows.transacts, arena.contender.most // 2)
    workflows = 2 * SLOTS
    each = max(1, total // workflows)
    settings = {"BENCH_WORK": "transact", "BENCH_STEPS": str(each), "BENCH_SLOTS": str(SLOTS)}
    arena.run("transact", workflows, **settings)
    return drained(arena, workflows * each, settings=settings)


def whole_of_one(arena: Arena, size: Size) -> Values:
    """Workflows of one step that are enqueued already, until the last has ended."""
    return _whole(arena, min(size.workflows.whole, arena.contender.most), 1)


def whole_of_ten(arena: Arena, size: Size) -> Values:
    """The same of ten steps."""
    return _whole(arena, max(1, min(size.workflows.whole // 5, arena.contender.most // 5)), TEN)


def _whole(arena: Arena, count: int, each: int) -> Values:
    settings = {"BENCH_WORK": "whole", "BENCH_STEPS": str(each), "BENCH_SLOTS": str(MANY_SLOTS)}
    arena.run("whole", count, **settings)
    return drained(arena, count, settings=settings)
