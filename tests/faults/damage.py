"""Planted damage while workers run: a database with a history, one damage, and jobs that have nothing to do with it."""

from __future__ import annotations

import re
import signal
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from detent.model.clock import TurnableClock
from detent.model.records import RepairStep
from detent.testing.stores import is_sqlite, plain_connection, table, turnable_store
from tests.deadlines import scaled, until
from tests.faults.ledger import Ring
from tests.processes.worker_processes import Worker
from tests.store.invariants.corruption import Corruption
from tests.store.invariants.life import Life, live
from tests.store.invariants.owner import Owner
from tests.store.invariants.pages import PageDamage, spoil_page_in_use

__all__ = ["LINES_PER_SECOND_MAX", "Past", "endure", "live_until_now", "of_page"]

LINES_PER_SECOND_MAX = 2
LEASE = scaled(6.0)
WATCHED_SECONDS = 2.0
"""How long a worker is watched after the jobs are done: every service that has something to do begins meanwhile."""

_BEGAN = timedelta(minutes=45)
_LINE = re.compile(r"^(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d),\d{3} (\w+) ")
_HARMLESS = ("INFO", "DEBUG")


@dataclass(frozen=True, slots=True)
class Past:
    """A database with a history up to now: its file or its name, and its jobs by name."""

    place: str
    ids: dict[str, int]


def live_until_now(url: str, place: str) -> Past:
    """Live in the database at `url`, so that its leases are held and its timers run by the clock on the wall."""
    with _own_clock(url), turnable_store(url) as (store, clock):
        clock.set(datetime.now(UTC) - _BEGAN)
        life = live(store, clock)
        assert clock.now() < datetime.now(UTC)
        return Past(place, life.ids)


@contextmanager
def _own_clock(url: str) -> Iterator[None]:
    """Give a PostgreSQL database its own clock back afterwards."""
    if is_sqlite(url):
        yield
        return
    with closing(plain_connection(url)) as connection:
        ((clock,),) = connection.execute("SELECT pg_get_functiondef('detent.clock()'::regprocedure)").fetchall()
        connection.commit()
        yield
        connection.execute(clock)
        connection.execute("DROP TABLE detent.test_clock")
        connection.commit()


def of_page(damage: PageDamage) -> Corruption:
    """The damage of a page as a corruption of SQLite's."""

    def plant(owner: Owner, _: Life) -> None:
        spoil_page_in_use(Path(owner.value("SELECT file FROM pragma_database_list WHERE name = 'main'")), damage)

    def named(*_: object) -> tuple[str, str]:
        return "file", "database"

    return Corruption(f"page-{damage.name}", "storage_is_sound", plant, named, heals=False, only="sqlite")


def endure(ring: Ring, past: Past, kinds: Sequence[Corruption]) -> None:
    """Plant each damage while a worker runs. Nothing else suffers, `verify` names each, and `repair` is idempotent."""
    life = Life(ring.app.store, TurnableClock(datetime.now(UTC)), past.ids)
    with closing(Owner(ring.url)) as owner:
        first = ring.worker(lease=LEASE)
        _work_is_done(ring, first)
        until(lambda: "dead_letters/whole" in first.log, "the alerts of the history")
        said = len(first.log)
        for kind in kinds:
            kind.plant(owner, life)
            _is_found(ring, owner, life, kind)
            _work_is_done(ring, first)
        _watch(first)
        first.signal(signal.SIGTERM)
        assert first.ends() == 0, first.log[-3000:]
        second = ring.worker(lease=LEASE)
        _work_is_done(ring, second)
        _watch(second)
        _is_repaired_once(ring)
        _work_is_done(ring, second)
        assert second.process.poll() is None, second.log[-3000:]
        _speaks_softly(first.log[said:], len(kinds))
        _speaks_softly(second.log, len(kinds))
        doubled = {job_id: rows for job_id, rows in ring.ledger().items() if rows > 1}
        assert doubled == {}


def _work_is_done(ring: Ring, worker: Worker) -> None:
    """Jobs that have nothing to do with the damage run, each with one row in the ledger."""
    jobs = [*ring.send_many("work", 2, ms=1), ring.send("work_async", ms=1), ring.send("report")]
    for job in jobs:
        try:
            ring.rests(job, "succeeded")
        except Exception as error:
            raise AssertionError(f"{error!r}; the worker said:\n{worker.log[-4000:]}") from error
    rows = ring.ledger()
    assert [rows[job.id] for job in jobs] == [1, 1, 1, 0]


def _watch(worker: Worker) -> None:
    end = time.monotonic() + WATCHED_SECONDS
    until(lambda: time.monotonic() > end or worker.process.poll() is not None, "a worker that goes on")


def _is_found(ring: Ring, owner: Owner, life: Life, kind: Corruption) -> None:
    """At once: some damage is mended by workers as they go on."""
    wanted = (kind.invariant, *kind.named(owner, life))
    found = {(one.invariant, one.entity, one.entity_id) for one in ring.app.record.verify()}
    assert wanted in found, sorted(found)


def _is_repaired_once(ring: Ring) -> None:
    """What `repair` changed it does not change again; it adds lines to the log and changes no line and no execution."""
    before = _records(ring.url)
    steps = _repair(ring)
    after = _records(ring.url)
    for name, rows in before.items():
        assert rows - after[name] == Counter(), name
    assert [step for step in _repair(ring) if step.can] == [], steps


def _repair(ring: Ring) -> list[RepairStep]:
    return ring.app.store.repair("ana", "it was damaged", apply=True)


def _records(url: str) -> dict[str, Counter[tuple[Any, ...]]]:
    with closing(plain_connection(url)) as connection:
        return {
            name: Counter(connection.execute(f"SELECT * FROM {table(url, name)}").fetchall())
            for name in ("execution", "transition_log")
        }


def _speaks_softly(log: str, kinds: int) -> None:
    """Count what is no ordinary message, with the lines of tracebacks, by the second."""
    lines: Counter[str] = Counter()
    second, counts = "", True
    for line in log.splitlines():
        if match := _LINE.match(line):
            second, counts = match[1], match[2] not in _HARMLESS
        if counts:
            lines[second] += 1
    loud = {second: count for second, count in lines.items() if count > LINES_PER_SECOND_MAX * kinds}
    assert loud == {}, log[-6000:]
