"""Where the processor's time of a no-op job goes in a drain, thread by thread, and in the database. Linux only."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from pathlib import Path

import psycopg

from benchmarks.contenders.threads import spent
from benchmarks.contest.arena import Arena, arena
from benchmarks.contest.contender import CONTENDERS
from benchmarks.contest.processes import Tree
from benchmarks.places import Places
from benchmarks.sides import DetentSide

__all__ = ["HEAD", "run"]

HEAD = ("microseconds of processor time a job", "PostgreSQL", "SQLite")
NAMES = {
    "MainThread": "child, the loop: contexts, arguments, the function, its ending",
    "detent-claimer": "child, the thread that claims",
    "detent-flusher": "child, the thread that writes endings",
    "other": "child, its other threads",
    "around": "the supervisor",
    "server": "PostgreSQL, all it does for the worker",
    "claim": "- of a claim of 500, by itself",
    "finish": "- of an ending of 500, by itself",
}
BATCHES = 20


def run(places: Places, quick: bool) -> list[tuple[str, ...]]:
    """A row for each part. Of a drain the middle is taken, when everything is under way."""
    count = 10_000 if quick else 60_000
    found: dict[str, dict[str, float]] = {}
    for one in CONTENDERS:
        if one.name == "Detent":
            with arena(one, places) as place:
                found[one.database] = drained(place, count)
    with places.postgres() as url:
        found["PostgreSQL"] |= bare(places, url)
    columns = [found["PostgreSQL"], found["SQLite"]]
    return [(label, *(f"{one[name]:.1f}" if name in one else "" for one in columns)) for name, label in NAMES.items()]


def drained(place: Arena, count: int) -> dict[str, float]:
    """Of a worker with one child."""
    place.run("bulk", count)
    place.settle()
    with tempfile.TemporaryDirectory() as directory:
        kept = Path(directory) / "threads"
        with place.working(BENCH_THREADS=str(kept)) as tree:
            place.wait_for(count // 5, tree)
            began, begun = _used(place, tree, kept), place.board.total()
            place.wait_for(count - count // 5, tree)
            ended, done = _used(place, tree, kept), place.board.total()
    used = {name: (ended[name] - began.get(name, 0.0)) / (done - begun) for name in ended}
    named = {
        name: used.pop(name, 0.0) for name in ("MainThread", "detent-claimer", "detent-flusher", "around", "server")
    }
    if place.contender.database == "SQLite":
        del named["server"]
    del used["measuring"]
    return {**named, "other": sum(used.values())}


def _used(place: Arena, tree: Tree, kept: Path) -> dict[str, float]:
    """In microseconds: of each thread of the child, of what is around it, and of the server."""
    threads = {name: nanoseconds / 1e3 for name, nanoseconds in json.loads(kept.read_text()).items()}
    around = sum(spent(thread) for top in tree.tops for thread in Path(f"/proc/{top}/task").iterdir()) / 1e3
    return {**threads, "around": around, "server": _server(_backends(place.url))}


def bare(places: Places, url: str) -> dict[str, float]:
    """What the server does for claims alone, and for endings alone."""
    with DetentSide(url) as side:
        jobs = side.jobs(1_000_000, 500 * (BATCHES + 1))
        for start in range(0, len(jobs), 1000):
            side.enqueue(jobs[start : start + 1000])
        side.finish(side.claim())
        places.settle(url)
        backends = _backends(url)
        began = _server(backends)
        claimed = [side.claim() for _ in range(BATCHES)]
        between = _server(backends)
        for batch in claimed:
            side.finish(batch)
        ended = _server(backends)
    done = sum(map(len, claimed))
    return {"claim": (between - began) / done, "finish": (ended - between) / done}


def _backends(url: str) -> Sequence[int]:
    if not url.startswith("postgresql:"):
        return ()
    with psycopg.connect(url) as connection:
        mine = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        return [pid for (pid,) in connection.execute(mine)]


def _server(backends: Sequence[int]) -> float:
    """Microseconds so far. The server runs beside us, or there is nothing to see."""
    return sum(spent(Path(f"/proc/{pid}")) for pid in backends) / 1e3
