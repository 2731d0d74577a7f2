"""Checks of the database: its schema, durability, disk, clock and record."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import TYPE_CHECKING

from detent.cli import output
from detent.cli.doctor.finding import Finding, duration, size, warn_if
from detent.model.clock import SystemClock
from detent.model.database_facts import Space
from detent.model.terminal_text import line
from detent.views.database_move import condition

if TYPE_CHECKING:
    from detent.app.detent import Detent
    from detent.store.contract import Store

__all__ = ["check_clock", "check_facts", "check_moves", "check_record", "check_space"]

_CLOCK_SKEW_MAX = timedelta(seconds=5)
_FREE_LOW = 1_000_000_000
_FREE_LOW_SHARE = 0.05
_FREE_NONE = 100_000_000
_DEAD_ROWS_MAX = 100_000
_UNUSED_MAX = 1_000_000_000
_TRANSACTION_SECONDS_MAX = 3600.0
_NOT_VACUUMED = "autovacuum is off, too slow, or waits for an old transaction; mend that and VACUUM the table"


def check_facts(store: Store) -> Iterator[Finding]:
    """Yield what the database says about itself."""
    facts = store.facts()
    yield warn_if("database", f"{facts.kind} {facts.version} at {store.name}", facts.version_caution)
    yield Finding("schema", "ok", f"schema {facts.schema}, which this version of Detent can use")
    if facts.differs:
        found = f"installed parts differ from those of this version ({', '.join(facts.differs)})"
        yield Finding("functions", "warn", f"{found}; run `detent migrate`")
    settings = ", ".join(f"{name} = {value}" for name, value in facts.durability.items())
    yield warn_if("durability", settings, facts.durability_caution)
    if (growth := store.log_growth()) is not None:
        kept = f"the write-ahead log holds {growth.bytes / (1 << 20):.1f} MB"
        yield Finding("log", "warn", growth.message) if growth.is_long else Finding("log", "ok", kept)


def check_space(space: Space | None) -> Iterator[Finding]:
    """Yield how full the disk is, and what makes the database larger than it needs to be."""
    if space is None:
        return
    if space.free_bytes is not None and space.disk_bytes:
        yield _disk(space.free_bytes, space.disk_bytes)
    yield _bloat(space)
    if (oldest := space.oldest) is not None and oldest.seconds > _TRANSACTION_SECONDS_MAX:
        open_for = f"{oldest.who} has had a transaction open for {duration(oldest.seconds)}"
        yield Finding("transactions", "warn", f"{open_for}: rows that died since then cannot be cleaned up; end it")


def _disk(free: int, disk: int) -> Finding:
    left = f"{size(free)} of {size(disk)} are free"
    if free < _FREE_NONE:
        return Finding("disk", "fail", f"{left}: nothing can be written when the disk is full; make room now")
    if free < _FREE_LOW or free < _FREE_LOW_SHARE * disk:
        return Finding("disk", "warn", f"{left}: make room, or delete old jobs sooner (see `detent worker --help`)")
    return Finding("disk", "ok", left)


def _bloat(space: Space) -> Finding:
    takes = f"the database takes {size(space.bytes)}"
    for table in space.tables:
        if table.dead > max(_DEAD_ROWS_MAX, table.live):
            rows = f"table {table.name} has {table.dead:,} dead rows beside {table.live:,} live ones"
            return Finding("space", "warn", f"{takes}; {rows}: {_NOT_VACUUMED}")
    if space.unused_bytes > max(_UNUSED_MAX, space.bytes / 2):
        unused = f"{size(space.unused_bytes)} of them are unused"
        return Finding("space", "warn", f"{takes}; {unused}: new rows go there, and VACUUM gives them back to the disk")
    return Finding("space", "ok", takes)


def check_moves(store: Store) -> Iterator[Finding]:
    """Yield a move that has closed this database."""
    for row in store.database_moves():
        if row.is_closed:
            yield Finding("move", "fail", f"it takes no writes: {condition(row)}")


def check_clock(app: Detent) -> Finding:
    """Return whether this machine and the database agree on the time."""
    clock = SystemClock()
    before, there, after = clock.now(), app.store.now(), clock.now()
    # A slow answer is no skew: the database read its clock at some time between `before` and `after`.
    skew = max(before - there, there - after)
    if skew > _CLOCK_SKEW_MAX:
        apart = f"this machine and the database are {duration(skew.total_seconds())} apart"
        return Finding("clock", "warn", f"{apart}: leases and due times follow the database; set both clocks by NTP")
    return Finding("clock", "ok", "this machine and the database agree")


def check_record(app: Detent) -> Finding:
    """Return whether an invariant is violated: also whether a table, an index or a guard is missing."""
    found = app.record.verify()
    if not found:
        return Finding("record", "ok", "no invariant is violated")
    names = ", ".join(sorted({one.invariant for one in found}))
    what = f"{output.count_of(len(found), 'violation')} ({names})"
    first = line(f"{found[0].entity} {found[0].entity_id}: {found[0].detail}")
    advice = "see `detent verify`; `detent repair` shows how to mend it"
    return Finding("record", "fail", f"{what}, first {first}; {advice}")
