"""What is done with workflows that wait: for signals, for a time, for children; and with a long history."""

from __future__ import annotations

import time
from contextlib import closing
from statistics import median

from benchmarks.contest.arena import Arena, Failed
from benchmarks.contest.workflows import MANY_SLOTS, percentile
from benchmarks.contest.works import Size, Values, drained, first_of, idle, reap
from detent import Detent
from detent.store.open import open_store

__all__ = ["fan_out", "long_history", "signals", "sleepers", "wake_ups"]

DAY = 86_400.0
SETTLE = 2.0
"""Seconds until a worker that has started has nothing to do."""
PEER_SLEEPERS = 10
"""A peer that keeps each of them in memory has one of so many."""
PARKED_PER_SECOND = 2_000
TURNS = 2
LOST = "SELECT count(*) FROM {detent}execution WHERE outcome NOT IN ('done', 'parked')"


def signals(arena: Arena, size: Size) -> Values:
    """From sending a signal to the body that goes on; Detent's beside the pick-up of a job by the same worker."""
    count = size.workflows.signals
    with arena.working(BENCH_DRAIN="", BENCH_WORK="signals") as tree:
        arena.run("signals", count, BENCH_WORK="signals")
        arena.wait_for(2 * count, tree)
        reached = _milliseconds(arena.board.samples())
        if arena.contender.is_peer:
            return reached
        arena.run("pick-up", count)
        arena.wait_for(3 * count, tree)
        job = _milliseconds(arena.board.samples()[count:])
    return {
        **reached,
        "p50_over_ms": reached["p50_ms"] - job["p50_ms"],
        "p99_over_ms": reached["p99_ms"] - job["p99_ms"],
    }


def _milliseconds(seconds: list[float]) -> Values:
    in_order = sorted(seconds)
    return {"p50_ms": 1e3 * percentile(in_order, 0.5), "p99_ms": 1e3 * percentile(in_order, 0.99)}


def sleepers(arena: Arena, size: Size) -> Values:
    """Very many workflows that sleep for a day: what they cost a worker that has nothing to do with them."""
    if arena.contender.is_peer:
        return _sleepers_in_memory(arena, size.workflows.sleepers // PEER_SLEEPERS)
    count = size.workflows.sleepers
    alone, _ = _idle_memory(arena)
    disk = arena.disk()
    parked = _put_to_sleep(arena, count, time.time() + DAY)
    reached = {"disk_kb": (arena.disk() - disk) / count / 1e3, "parked_per_second": parked}
    beside, reached["restart_s"] = _idle_memory(arena)
    reached |= {"mb": beside, "more_mb": beside - alone}
    rates = {"beside": 0.0, "free": 0.0}
    for turn in range(TURNS):
        with arena.beside() as fresh:
            pair = [("free", fresh), ("beside", arena)]
            for name, one in pair if turn % 2 else reversed(pair):
                one.run("bulk", size.drained)
                one.settle()
                rates[name] += first_of(one, size.drained) / TURNS
    with closing(open_store(arena.url)) as store:
        reap(store)
    return {**reached, **rates, "kept": rates["beside"] / rates["free"], **idle(arena, size)}


def _sleepers_in_memory(arena: Arena, count: int) -> Values:
    """Of a peer whose sleepers stay with their worker: its memory and threads, and how long a restart takes."""
    with arena.working(BENCH_WORK="sleepers") as tree:
        arena.run("sleepers", count, BENCH_UNTIL=str(time.time() + DAY))
        arena.wait_for(count, tree)
        time.sleep(SETTLE)
        reached = {"mb": tree.resident(), "threads": float(tree.threads())}
    arena.new_board()
    began = time.monotonic()
    with arena.working(BENCH_WORK="sleepers") as tree:
        arena.wait_for(count, tree)
    return {**reached, "sleepers": float(count), "restart_s": time.monotonic() - began}


def _idle_memory(arena: Arena) -> tuple[float, float]:
    """Megabytes of an idle worker, and seconds from its start to the end of a job."""
    arena.new_board()
    arena.run("one", 1)
    began = time.monotonic()
    with arena.working(BENCH_DRAIN="") as tree:
        arena.wait_for(1, tree)
        took = time.monotonic() - began
        time.sleep(SETTLE)
        return tree.resident(), took


def _put_to_sleep(arena: Arena, count: int, until: float) -> float:
    """Start that many sleepers and wait until all are parked. Return how many were, a second."""
    arena.run("sleepers", count, BENCH_UNTIL=str(until))
    arena.settle()
    arena.new_board()
    with arena.working(BENCH_SLOTS=str(MANY_SLOTS)) as tree:
        arena.wait_for(count, tree)
        rate = count / (time.time() - arena.board.first())
        arena.wait_for_the_end(tree)
    return rate


def wake_ups(arena: Arena, size: Size) -> Values:
    """Very many workflows that wake up at the same moment, against the drain of as many jobs that are there already."""
    count, lead = size.workflows.sleepers, size.workflows.lead
    for _ in range(3):
        with arena.beside() as place:
            until = time.time() + lead + count / PARKED_PER_SECOND
            _put_to_sleep(place, count, until)
            if time.time() < until - 1.0:
                return _woken(place, count, until, size)
        lead *= 4
    raise Failed("they did not fall asleep before they were to wake up")


def _woken(arena: Arena, count: int, until: float, size: Size) -> Values:
    arena.settle()
    arena.new_board()
    with arena.working(BENCH_DRAIN="", BENCH_SLOTS=str(MANY_SLOTS)) as tree:
        while time.time() < until:
            time.sleep(0.05)
        arena.wait_for(count, tree)
        rate = count / (time.time() - until)
    late = sorted(arena.board.samples())
    with arena.beside() as fresh:
        fresh.run("bulk", size.drained)
        base = drained(fresh, size.drained)["per_second"]
    return {
        "per_second": rate,
        "kept": rate / base,
        "late_p50_s": percentile(late, 0.5),
        "late_most_s": late[-1],
        "lost": float(arena.count(LOST)),
    }


def fan_out(arena: Arena, size: Size) -> Values:
    """From the spawn of the first no-op child to the end of all, as the parent sees it; peers have the fewest only."""
    reached: Values = {}
    counts = size.workflows.children[:1] if arena.contender.is_peer else size.workflows.children
    with arena.working(BENCH_DRAIN="", BENCH_WORK="fan-out") as tree:
        for number, count in enumerate(counts, start=1):
            arena.run("fan-out", count)
            arena.wait_for(number, tree)
            (*_, seconds) = arena.board.samples()
            reached[f"seconds_{number}"] = seconds
    return {"per_second": counts[0] / reached["seconds_1"], **reached}


def long_history(arena: Arena, size: Size) -> Values:
    """The last steps of a long history against its first ones; and what a new worker takes to come to its end again."""
    count = size.workflows.long
    with arena.working(BENCH_DRAIN="") as tree:
        job_id = int(arena.run("long", count)["id"])
        arena.wait_for(1, tree)
        times = arena.board.samples()
    tenth = count // 10
    growth = median(times[-tenth:]) / median(times[tenth // 10 : tenth // 10 + tenth])
    arena.new_board()
    arena.run("one", 1)
    with arena.working(BENCH_DRAIN="") as tree:
        arena.wait_for(1, tree)
        time.sleep(SETTLE)
        before = tree.memory()["child_mb"]
        arena.run("wake-long", job_id)
        arena.wait_for(2, tree)
        more = max(0.0, tree.peak_of_child() - before)
    return {"growth": growth, "replay_ms": _replayed(arena.url, job_id, count), "replay_mb": more}


def _replayed(url: str, job_id: int, count: int) -> float:
    """Milliseconds from the claim of the second attempt to its first new step."""
    with closing(Detent(url)) as app:
        job = app.jobs.get(job_id)
        claimed = next(one.leased_at for one in job.executions() if one.attempt == 2)
        reached = next(one.began_at for one in job.steps(after=str(count)) if one.path == "after")
    return 1e3 * (reached - claimed).total_seconds()
