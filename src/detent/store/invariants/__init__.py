"""The invariants: one SQL file each, the same names for both databases.

A file is one SELECT that gives the rows which break its invariant as (entity, entity_id, detail); no rows is healthy.
Its stem is the invariant's name. On SQLite the parameter `:now` is the time in microseconds; on PostgreSQL time is the
database's own. The invariants about the schema itself have no file: `schema_checks` makes them from what would be
installed.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from detent.errors import DatabaseBusy, DatabaseError, DatabaseForbidden, DatabaseReadOnly, DatabaseUnreachable
from detent.model.records import Violation
from detent.store.row_errors import cause_of
from detent.store.texts import Dialect, texts

__all__ = ["Dialect", "Invariant", "can_go_on", "load", "unchecked", "watched"]

_STORAGE = "storage_is_sound"


@dataclass(frozen=True, slots=True)
class Invariant:
    """What must hold, as the query for the rows that break it."""

    name: str
    sql: str
    is_of_schema: bool = False


def load(dialect: Dialect, *, schema: bool = True) -> tuple[Invariant, ...]:
    """Return every invariant for a database, in the order of their names.

    Without `schema`, leave out those that compare its schema with that of this release.
    """
    return tuple(one for one in _all(dialect) if schema or not one.is_of_schema)


@functools.cache
def _all(dialect: Dialect) -> tuple[Invariant, ...]:
    from detent.store.invariants.schema_checks import schema_checks
    from detent.store.lifecycle_sql import filled

    found = [Invariant(name, filled(text, dialect)) for name, text in texts(f"invariants/{dialect}")]
    found += [Invariant(name, text, is_of_schema=True) for name, text in schema_checks(dialect).items()]
    return tuple(sorted(found, key=lambda one: one.name))


def watched(invariants: Sequence[Invariant], watch: Callable[[int], None] | None) -> Iterator[Invariant]:
    """One after the other; before each, `watch` hears how many are left."""
    for number, invariant in enumerate(invariants):
        if watch is not None:
            watch(len(invariants) - number)
        yield invariant


def can_go_on(error: DatabaseError) -> bool:
    """Return whether other invariants can be checked after this error: damaged rows or pages made a query fail."""
    return not isinstance(error, DatabaseBusy | DatabaseForbidden | DatabaseReadOnly | DatabaseUnreachable)


def unchecked(name: str, error: DatabaseError) -> Violation:
    """Return the violation of an invariant whose query fails."""
    if name == _STORAGE:
        return Violation(_STORAGE, "file", "database", f"its pages cannot be checked: {cause_of(error)}")
    return Violation(_STORAGE, "invariant", name, f"it cannot be checked: {cause_of(error)}")
