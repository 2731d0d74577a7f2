"""What is done: the same work for everyone who can do it, each on a fresh database of its own.

A drain is timed from the beginning of the first body to the moment the database says that no job is left, for everyone
alike: starting a program and its first claim are no part of it.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field

import psycopg

from benchmarks.contest.arena import Arena
from benchmarks.measure import stopwatch
from benchmarks.sides import LEASE
from detent.store.contract import Store

__all__ = [
    "QUICK",
    "WHOLE",
    "Size",
    "Values",
    "WorkflowSize",
    "batch",
    "bulk",
    "callers",
    "drain",
    "drain_by_two",
    "drained",
    "first_of",
    "idle",
    "inside",
    "memory",
    "one",
    "pick_up",
    "pipeline",
    "reap",
    "snapshot",
    "writes",
]

Values = dict[str, float]
"""What one contender reached at one work, by name."""

NONE: Mapping[str, str] = {}
SMALL = "10"
"""Jobs in a small batch."""


@dataclass(frozen=True, slots=True)
class WorkflowSize:
    """How much is done with workflows."""

    steps: int = 1_000
    """Steps of one workflow."""
    at_once: int = 200
    each: int = 100
    """Workflows that run at once, and the steps of each."""
    transacts: int = 3_200
    """Steps that write a row."""
    whole: int = 5_000
    """Workflows of one step; a fifth as many have ten."""
    signals: int = 150
    sleepers: int = 100_000
    lead: float = 10.0
    """Seconds between the last sleeper's start and the moment at which all of them wake up, at least."""
    children: tuple[int, ...] = (1_000, 100_000)
    long: int = 9_990
    """Steps of a long history; 10,000 are the most."""


@dataclass(frozen=True, slots=True)
class Size:
    """How much is done."""

    rounds: int
    single: int
    many: int
    drained: int
    writes: int
    pick_ups: int
    passed: int
    """Jobs that go through before a drain under a held snapshot is timed."""
    later: int
    """Jobs after which memory is looked at again."""
    idle: float
    """Seconds for which an idle worker is watched."""
    finished: int = 10_000_000
    """Jobs that are done already where a past is filled in."""
    pending: int = 1_000_000
    """Jobs that wait there."""
    records: int = 100_000
    """Records that go through a pipeline."""
    targets: int = 100_000
    """Targets of a batch run."""
    crowds: tuple[int, ...] = (1_000, 20_000, 100_000)
    """Numbers of tenants; the largest is the number of limit keys, too."""
    old: int = 1_000_000
    """Finished jobs that retention deletes."""
    workflows: WorkflowSize = field(default_factory=WorkflowSize)


WHOLE = Size(5, 2_000, 50_000, 50_000, 4_000, 150, 200_000, 1_000_000, 20.0)
QUICK = Size(
    *(1, 200, 10_000, 10_000, 800, 30, 20_000, 25_000, 4.0, 100_000, 50_000, 30_000, 10_000, (100, 2_000), 50_000),
    workflows=WorkflowSize(200, 50, 20, 320, 500, 30, 2_000, 4.0, (200, 2_000), 1_000),
)


def one(arena: Arena, size: Size) -> Values:
    """Enqueue one by one, one caller."""
    return arena.run("one", min(size.single, arena.contender.most))


def callers(arena: Arena, size: Size) -> Values:
    """Enqueue one job each, from one caller, from threads and from coroutines."""
    return arena.run("callers", size.single)


def bulk(arena: Arena, size: Size) -> Values:
    """Enqueue in bulk."""
    return arena.run("bulk", min(size.many, arena.contender.most))


def drain(arena: Arena, size: Size, processes: int = 1) -> Values:
    """No-op jobs that are there already."""
    count = min(size.drained, arena.contender.most)
    arena.run("bulk", count)
    return drained(arena, count, processes)


def drained(
    arena: Arena, count: int, processes: int = 1, batch: str = "", first_id: int = 0, settings: Mapping[str, str] = NONE
) -> Values:
    """Jobs a second, what they cost the workers, and the most memory these had. Jobs before `first_id` are those of
    earlier drains."""
    arena.settle()
    arena.new_board()
    with arena.working(processes, BENCH_BATCH=batch, **settings) as tree:
        arena.wait_for(1, tree)
        started = tree.cpu_seconds()
        arena.wait_for(count, tree)
        arena.wait_until_none_is_left(first_id)
        took = time.time() - arena.board.first()
        used = tree.cpu_seconds() - started
    return {"per_second": count / took, "cpu_us": used / count * 1e6, "peak_mb": tree.peak}


def drain_by_two(arena: Arena, size: Size) -> Values:
    """The same with two worker processes."""
    return drain(arena, size, processes=2)


def writes(arena: Arena, size: Size) -> Values:
    """Jobs that each write one row in the transaction that marks them committed, 16 at once."""
    count = min(size.writes, arena.contender.most)
    if arena.contender.name in ("pgbench", "one sync a job"):
        return arena.run("writes", count)
    arena.run("bulk-writes", count)
    return drained(arena, count)


def pipeline(arena: Arena, size: Size) -> Values:
    """Records from page to canonical table: thirty partitions, pages of 100, portions of 2,000."""
    if arena.contender.name == "direct SQL":
        return arena.run("pipeline", size.records)
    with arena.working(BENCH_DRAIN="") as tree:
        arena.run("one", 1)
        arena.wait_for(1, tree)
        return arena.run("pipeline", size.records)


def batch(arena: Arena, size: Size) -> Values:
    """Targets of a batch run: previewed, applied and rolled back."""
    with arena.working(BENCH_DRAIN="") as tree:
        arena.run("one", 1)
        arena.wait_for(1, tree)
        return arena.run("batch", size.targets)


def pick_up(arena: Arena, size: Size, command: str = "pick-up") -> Values:
    """From the call of enqueue to the beginning of the body, where a worker waits for work."""
    with arena.working(BENCH_DRAIN="") as tree:
        arena.run("one", 1)
        arena.wait_for(1, tree)
        time.sleep(0.5)
        before = arena.board.total()
        arena.run(command, size.pick_ups)
        arena.wait_for(before + size.pick_ups, tree)
    samples = sorted(arena.board.samples())
    return {
        "p50_ms": 1e3 * samples[len(samples) // 2],
        "p99_ms": 1e3 * samples[int(len(samples) * 0.99)],
        "least_ms": 1e3 * samples[0],
    }


def inside(arena: Arena, size: Size) -> Values:
    """The same where the job is enqueued inside the worker's own process."""
    return pick_up(arena, size, "inside")


def snapshot(arena: Arena, size: Size) -> Values:
    """Drains after many jobs went through, free and with a snapshot held all the while, in large and small batches."""
    reached: Values = {}
    for kind, held in (("free", False), ("held", True)):
        with arena.beside() as fresh, psycopg.connect(fresh.url) if held else nullcontext() as holding:
            if holding is not None:
                holding.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
                holding.execute("SELECT count(*) FROM pg_class")
            for count, small in ((size.passed, False), (size.drained // 2, False), (size.drained // 20, True)):
                fresh.run("bulk", count)
                rate = drained(fresh, count, batch=SMALL if small else "")["per_second"]
                reached[f"{kind}_{'small' if small else 'large'}"] = rate
    return {**reached, **{f"kept_{one}": reached[f"held_{one}"] / reached[f"free_{one}"] for one in ("large", "small")}}


def memory(arena: Arena, size: Size) -> Values:
    """Of a worker in a long drain: after the first 20,000 jobs, and near its end."""
    first = min(20_000, size.later // 2)
    arena.run("bulk", size.later)
    arena.settle()
    arena.new_board()
    with arena.working() as tree:
        arena.wait_for(first, tree)
        early = tree.memory()
        arena.wait_for(int(size.later * 0.95), tree)
        late = tree.memory()
    return {**late, "growth": late["child_mb"] / early["child_mb"], "early_child_mb": early["child_mb"]}


def idle(arena: Arena, size: Size) -> Values:
    """A worker that has nothing to do: its share of a core, and what it asks of the database."""
    arena.log_statements()
    with arena.working(BENCH_DRAIN="") as tree:
        arena.run("one", 1)
        arena.wait_for(1, tree)
        time.sleep(2.0)
        asked, cpu, began = arena.statements(), tree.cpu_seconds(), time.monotonic()
        time.sleep(size.idle)
        passed = time.monotonic() - began
        used = {"cpu_percent": 100 * (tree.cpu_seconds() - cpu) / passed}
        now_asked = arena.statements()
    return used if asked is None or now_asked is None else {**used, "queries": (now_asked - asked) / passed}


def first_of(arena: Arena, count: int, **settings: str) -> float:
    """From the first body to that one, a second."""
    arena.new_board()
    with arena.working(1, BENCH_DRAIN="", **settings) as tree:
        arena.wait_for(count, tree)
        return count / (time.time() - arena.board.first())


def reap(store: Store) -> float:
    """Delete the leases of the drains before, and return how long it took. A worker does this when they have expired,
    half a minute later. It is no part of being idle."""
    time.sleep(LEASE + 1.0)
    with stopwatch() as watch:
        while store.lease_reap(100).leases:
            pass
    return watch.seconds
