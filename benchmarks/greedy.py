"""A greedy writer on SQLite: how long another process's renewal waits, and who passes it meanwhile.

One process commits in a tight loop; each of its transactions moves a number in the database on by one. Another renews
its lease every 20 ms, and reads that number before it asks and when it is in. With the fair write lock it also reads
it when it stands first in line: from there on only the transaction that runs already may pass.
"""

from __future__ import annotations

import multiprocessing
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Event
from typing import Any

from benchmarks.measure import spread
from benchmarks.places import Places
from benchmarks.sides import TASK, WORKER
from detent.model.clock import SystemClock
from detent.model.records import NewJob
from detent.store.sqlite.driver.write_lock import WriteLock
from detent.store.sqlite.store import SqliteStore

__all__ = ["HEAD", "run"]

HEAD = (
    "renewals beside a greedy writer",
    "wait p50 ms",
    "wait p99 ms",
    "longest ms",
    "passed since it asked: p99, most",
    "since first in line: most",
    "the greedy one, commits/s",
)
EVERY = 0.02
LEASE = 30.0
PATIENCE = 60.0
_NEXT = "SELECT next FROM detent_ids"
_STEP = "UPDATE detent_ids SET next = next + 1"
_RENEW = "UPDATE detent_lease SET expires_at = ? WHERE id = 1"

Sample = tuple[float, int, int]
"""How long it waited in seconds; passed by how many since it asked, and since it stood first in line."""


def run(places: Places, quick: bool) -> list[tuple[str, ...]]:
    """Two rows: with the fair write lock, and with SQLite's own lock and a busy timeout."""
    seconds, repetitions = (2.0, 1) if quick else (4.0, 3)
    rows: list[list[tuple[list[Sample], float]]] = [[], []]
    for turn in range(repetitions):
        for fair in (True, False) if turn % 2 == 0 else (False, True):
            with places.sqlite() as url:
                rows[not fair].append(race(url.removeprefix("sqlite:///"), seconds, fair=fair))
    return [written("with the fair write lock", rows[0]), written("BEGIN IMMEDIATE, busy timeout", rows[1])]


def race(path: str, seconds: float, *, fair: bool) -> tuple[list[Sample], float]:
    """Return the renewals within `seconds`, and the commits per second of the greedy process."""
    with closing(SqliteStore(path, clock=SystemClock())) as store:
        store.ready()
        store.job_enqueue([NewJob(id=1, task=TASK, payload="{}", nonce=1, fingerprint="")])
        store.job_claim(lease_id=1, worker=WORKER, queues=None, tasks=[TASK], limit=1, lease=LEASE)
        first = store.ids_reserve(0)
    spawn = multiprocessing.get_context("spawn")
    stop = spawn.Event()
    here, there = spawn.Pipe(duplex=False)
    greedy = spawn.Process(target=commit_greedily, args=(path, fair, stop))
    other = spawn.Process(target=renew, args=(path, fair, seconds, there))
    try:
        greedy.start()
        with closing(sqlite3.connect(path)) as looking:
            while looking.execute(_NEXT).fetchone()[0] == first:
                time.sleep(0.01)
        other.start()
        there.close()
        if not here.poll(seconds + PATIENCE):
            raise TimeoutError("the renewals did not end")
        samples, commits = here.recv()
    finally:
        stop.set()
        for process in (greedy, other):
            if process.pid is not None:
                process.join(PATIENCE)
                process.kill()
    return samples, commits


def commit_greedily(path: str, fair: bool, stop: Event) -> None:
    """One transaction after the other, without a pause."""
    if fair:
        with closing(SqliteStore(path, clock=SystemClock())) as store:
            while not stop.is_set():
                store.ids_reserve(1)
        return
    with closing(plain(path)) as connection:
        while not stop.is_set():
            connection.execute("BEGIN IMMEDIATE")
            connection.execute(_STEP)
            connection.execute("COMMIT")


def renew(path: str, fair: bool, seconds: float, answer: Connection) -> None:
    """Every 20 ms one renewal, each timed from asking to durable."""
    samples: list[Sample] = []
    with closing(plain(path)) as looking, renewing(path, fair, looking) as one:
        one()
        began = time.perf_counter()
        first = look(looking)
        while time.perf_counter() < began + seconds:
            time.sleep(EVERY)
            before = look(looking)
            asked = time.perf_counter()
            in_line, inside = one()
            samples.append((time.perf_counter() - asked, inside - before, inside - in_line))
        commits = (look(looking) - first) / (time.perf_counter() - began)
    answer.send((samples, commits))


@contextmanager
def renewing(path: str, fair: bool, looking: sqlite3.Connection) -> Iterator[Any]:
    """A renewal to be called: the number when it stood first in line, and when it was in."""
    if not fair:
        with closing(plain(path)) as connection:

            def plainly() -> tuple[int, int]:
                connection.execute("BEGIN IMMEDIATE")
                inside = look(connection)
                connection.execute(_RENEW, (time.time_ns() // 1000 + int(LEASE * 1e6),))
                connection.execute("COMMIT")
                return inside, inside

            yield plainly
        return

    seen = [0]

    class Watched(WriteLock):
        """Notes the number as soon as nobody else can come first."""

        def _take(self, write: int, deadline: float, timeout: float) -> None:
            seen[0] = look(looking)
            super()._take(write, deadline, timeout)

    with closing(SqliteStore(path, clock=SystemClock())) as store:
        store._file._write_lock = Watched(path, store.name)

        def fairly() -> tuple[int, int]:
            def together(verbs: Any) -> int:
                inside = verbs.ids_reserve(0)
                verbs.lease_renew([1], LEASE)
                return int(inside)

            inside = store.together(together)
            return seen[0], inside

        yield fairly


def plain(path: str) -> sqlite3.Connection:
    """As Detent opens it, without its write lock."""
    connection = sqlite3.connect(path, timeout=30.0, isolation_level=None)
    connection.execute("PRAGMA synchronous = FULL")
    return connection


def look(connection: sqlite3.Connection) -> int:
    """Where the greedy one stands."""
    return int(connection.execute(_NEXT).fetchone()[0])


def written(name: str, races: list[tuple[list[Sample], float]]) -> tuple[str, ...]:
    """A row of the table: quantiles race by race."""
    waits = [sorted(sample[0] * 1000 for sample in samples) for samples, _ in races]
    passed = sorted(sample[1] for samples, _ in races for sample in samples)
    in_line = max(sample[2] for samples, _ in races for sample in samples)
    return (
        name,
        spread([one[len(one) // 2] for one in waits], "{:.2f}"),
        spread([one[len(one) * 99 // 100] for one in waits], "{:.1f}"),
        spread([one[-1] for one in waits], "{:.0f}"),
        f"{passed[len(passed) * 99 // 100]}, {passed[-1]}",
        str(in_line) if name.startswith("with ") else "there is no line",
        spread([commits for _, commits in races], "{:,.0f}"),
    )
