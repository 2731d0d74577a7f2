"""The invariants: one query each, written once for both databases.

A file in `queries/` is one SELECT for the rows that break its invariant, as (entity, entity_id, detail). If it returns
no rows, the invariant holds. The file's name is the invariant's name. The query is written for PostgreSQL;
`sqlite_translation` makes SQLite's out of it. Where the databases truly differ there are two files, `NAME.postgres.sql`
and `NAME.sqlite.sql`. The invariants about the schema itself have no file: `schema_checks` makes them from what would
be installed.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from detent.errors import DatabaseBusy, DatabaseError, DatabaseForbidden, DatabaseReadOnly, DatabaseUnreachable
from detent.model.records import Violation
from detent.store.row_errors import cause_of
from detent.store.sql_files import Dialect, texts

__all__ = ["Dialect", "Invariant", "can_go_on", "load", "meanings", "unchecked", "watched"]

_STORAGE = "storage_is_sound"


@dataclass(frozen=True, slots=True)
class Invariant:
    """A condition that must hold, as the query for the rows that break it."""

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

    found = [Invariant(name, filled(text, dialect)) for name, text in _queries(dialect)]
    found += [Invariant(name, text, is_of_schema=True) for name, text in schema_checks(dialect).items()]
    return tuple(sorted(found, key=lambda one: one.name))


def _queries(dialect: Dialect) -> Iterator[tuple[str, str]]:
    from detent.store.invariants.sqlite_translation import for_sqlite

    for stem, text in texts("invariants/queries"):
        name, _, only = stem.partition(".")
        if only in ("", dialect):
            yield name, for_sqlite(text) if dialect == "sqlite" and not only else text


@functools.cache
def meanings() -> dict[str, str]:
    """Return what each invariant says, by name, from the first lines of its file. Those of the schema have no file."""
    found: dict[str, str] = {}
    for stem, text in texts("invariants/queries"):
        head = itertools.takewhile(lambda line: line.startswith("--"), text.splitlines())
        lines = itertools.takewhile(lambda line: not line.startswith("-- differs"), head)
        said = " ".join(line.removeprefix("--").strip() for line in lines)
        # The rules that it stands for come first.
        found[stem.partition(".")[0]] = said.partition(": ")[2] or said
    return found


def watched(invariants: Sequence[Invariant], watch: Callable[[int], None] | None) -> Iterator[Invariant]:
    """Yield the invariants; before each, call `watch` with the number of those that are left."""
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
