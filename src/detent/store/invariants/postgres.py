"""`verify` on PostgreSQL: the invariants, and the pages of tables and indexes if the extension amcheck is installed."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import psycopg

from detent.errors import DatabaseError
from detent.model.records import Violation
from detent.store.installed_release import is_newer
from detent.store.invariants import can_go_on, load, unchecked, watched
from detent.store.postgres.differences import changed_views
from detent.store.postgres.driver.connection import Connection
from detent.store.postgres.driver.failures import translated
from detent.store.postgres.schema import installed

__all__ = ["changed_definitions", "pages_not_checked", "violations"]

_FINDINGS_MAX = 20
_AMCHECK = "SELECT e.extnamespace::regnamespace::text FROM pg_catalog.pg_extension e WHERE e.extname = 'amcheck'"
_MAY_USE = """
SELECT bool_and(has_function_privilege(p.oid, 'EXECUTE')) FROM pg_catalog.pg_proc p
 WHERE p.pronamespace = %s::regnamespace AND p.proname IN ('bt_index_check', 'verify_heapam')
"""
_TABLES = """
SELECT c.oid, c.relname FROM pg_catalog.pg_class c
 WHERE c.relnamespace = 'detent'::regnamespace AND c.relkind = 'r' ORDER BY c.relname
"""
_INDEXES = """
SELECT i.oid, i.relname FROM pg_catalog.pg_class i
  JOIN pg_catalog.pg_index x ON x.indexrelid = i.oid JOIN pg_catalog.pg_am a ON a.oid = i.relam
 WHERE i.relnamespace = 'detent'::regnamespace AND a.amname = 'btree' AND x.indisvalid AND x.indisready
 ORDER BY i.relname
"""


def violations(connection: Connection, watch: Callable[[int], None] | None = None) -> list[Violation]:
    """Return every row that breaks an invariant, in the order of the invariants' names."""
    found: list[Violation] = []
    schema = not is_newer(installed(connection))
    for invariant in watched(load("postgres", schema=schema), watch):
        try:
            with connection.transaction():
                rows = connection.execute(invariant.sql.encode()).fetchall()
        except psycopg.Error as error:
            known = translated(error, "this database")
            if not isinstance(known, DatabaseError) or not can_go_on(known):
                raise
            found.append(unchecked(invariant.name, known))
        else:
            found += [Violation(invariant.name, *(str(part) for part in row)) for row in rows]
    found += [*(changed_definitions(connection) if schema else ()), *_damaged_pages(connection)]
    return sorted(found, key=lambda one: one.invariant)


def changed_definitions(connection: Connection) -> Iterator[Violation]:
    """Yield the views that are not those of this release."""
    for name in changed_views(connection):
        yield Violation("definitions_are_in_place", "view", name, "its definition was changed")


def pages_not_checked(connection: Connection) -> str | None:
    """Return why the pages of tables and indexes cannot be checked, and what to do about it; None if they can."""
    row = connection.execute(_AMCHECK).fetchone()
    if row is None:
        return "Pages were not checked: `CREATE EXTENSION amcheck` in this database lets verify check them."
    allowed = connection.execute(_MAY_USE, row).fetchone()
    if allowed is None or not allowed[0]:
        return (
            "Pages were not checked: this role may not call the functions of the extension amcheck; "
            "grant it EXECUTE on bt_index_check and verify_heapam."
        )
    return None


def _damaged_pages(connection: Connection) -> Iterator[Violation]:
    """Yield what the extension amcheck finds in tables and indexes, the latter compared with their tables."""
    if pages_not_checked(connection) is not None:
        return
    (schema,) = connection.execute(_AMCHECK).fetchone() or ("",)
    heap = f"SELECT blkno, msg FROM {schema}.verify_heapam(%s::oid::regclass, true) LIMIT {_FINDINGS_MAX}"
    index = f"SELECT {schema}.bt_index_check(%s::oid::regclass, true)"
    for oid, name in connection.execute(_TABLES).fetchall():
        for block, message in _found(connection, heap, oid):
            at = "" if block is None else f"block {block}: "
            yield Violation("storage_is_sound", "file", f"table {name}", f"{at}{message}")
    for oid, name in connection.execute(_INDEXES).fetchall():
        for _, message in _found(connection, index, oid, rows=False):
            detail = f"{message}; `REINDEX INDEX detent.{name}` rebuilds it if nothing else is damaged"
            yield Violation("storage_is_sound", "file", f"index {name}", detail)


def _found(connection: Connection, sql: str, oid: int, *, rows: bool = True) -> list[tuple[int | None, str]]:
    """Return what a check says of a table or an index; damage that stops it is an error."""
    try:
        with connection.transaction():
            found = connection.execute(sql.encode(), (oid,)).fetchall()
    except psycopg.Error as error:
        known = translated(error, "this database")
        if not isinstance(known, DatabaseError) or not can_go_on(known):
            raise
        return [(None, error.diag.message_primary or str(error))]
    return found if rows else []
