"""PostgreSQL databases that one test after another uses, emptied in between.

A new database costs the server some 25 ms, and the first statements of a new connection cost more than most tests: the
server process has to read the catalog and to compile every function. So a database and the idle connections of its
store go from one test to the next, as they go from one job to the next in a worker.

What a test did is undone: rows are deleted, sequences and the clock are set back, other connections are ended. If
anything else has changed (a definition, a right, statistics), or if a table has grown, the database is dropped, and
the next test gets a new copy.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from typing import Any

import psycopg
from psycopg import sql
from psycopg.rows import TupleRow

from detent.model.records import Violation
from detent.store.contract import Store
from detent.store.open import open_store
from detent.store.postgres.driver.connection import OwnConnection
from detent.store.postgres.store import PostgresStore
from detent.testing.postgres import Cluster
from detent.testing.stores import StoreClock, TableClock, row_invariants

__all__ = ["ReusedDatabase", "ReusedDatabases"]

PAGES_MAX = 64
"""A table of more pages is large: the server would choose other plans, and the next test would be slower."""

END_SECONDS_MAX = 10

_CATALOG = (
    *("pg_attrdef", "pg_attribute", "pg_class", "pg_constraint", "pg_default_acl", "pg_event_trigger", "pg_extension"),
    *("pg_index", "pg_inherits", "pg_namespace", "pg_policy", "pg_proc", "pg_publication", "pg_rewrite", "pg_trigger"),
    *("pg_type", "pg_statistic", "pg_statistic_ext", "pg_db_role_setting"),
)
"""Every definition is a row here, and a changed row is the work of a newer transaction."""

_DEFINITIONS = " UNION ALL ".join(
    f"SELECT '{name}', count(*), max(xmin::text::bigint) FROM pg_catalog.{name}" for name in _CATALOG
)
_RIGHTS = "SELECT datacl::text, datconnlimit, datallowconn FROM pg_database WHERE datname = current_database()"
_TABLES = """
SELECT relname, pg_relation_size(oid) / 8192 FROM pg_class
 WHERE relnamespace = 'detent'::regnamespace AND relkind = 'r'
"""
_SEQUENCES = "SELECT relname FROM pg_class WHERE relnamespace = 'detent'::regnamespace AND relkind = 'S'"
_OTHERS = """
SELECT bool_and(pg_terminate_backend(pid, %s)) FROM pg_stat_activity
 WHERE datname = current_database() AND NOT pid = ANY(%s) AND backend_type = 'client backend'
"""


class ReusedDatabase:
    """A copy of a template, and the connections to it that stay open between tests."""

    def __init__(self, name: str, url: str) -> None:
        self.name = name
        self.url = url
        self._keeper = _connect(url)
        self._checker: psycopg.Connection[TupleRow] | None = None
        self._idle: list[OwnConnection] = []
        self._invariants = _all_in_one()
        self._filled = {table: self._rows(table) for table, pages in self._pages().items() if pages}
        self._sequences = {
            name: self._keeper.execute(f"SELECT last_value, is_called FROM detent.{name}".encode()).fetchone()
            for (name,) in self._keeper.execute(_SEQUENCES).fetchall()
        }
        self._definitions = self._read_definitions()

    @contextmanager
    def open(self) -> Iterator[tuple[Store, StoreClock]]:
        """Open a store with the idle connections that the last test left, and its clock."""
        with closing(open_store(self.url)) as store:
            assert isinstance(store, PostgresStore)
            pool = store._pool
            for connection in self._idle:
                slot = pool._new_slot()
                assert slot is not None
                slot.connection = connection
                pool.give_back(slot)
            self._idle = []
            store.ready()
            yield store, TableClock(self._keeper)
            slots = iter(pool.idle_connection, None)
            self._idle = [slot.connection for slot in slots if slot is not None]

    def violations(self) -> list[Violation]:
        """Return the rows that break an invariant, as `detent.testing.stores.row_violations` does."""
        # On a connection of its own: `reset` makes the keeper forget its plans. A plan is for small tables.
        if self._checker is None:
            self._checker = _connect(self.url)
        prepare = max(self._pages().values()) <= PAGES_MAX
        return [Violation(*row) for row in self._checker.execute(self._invariants, prepare=prepare).fetchall()]

    def reset(self) -> bool:
        """Undo what the test did. Return False if that is not possible."""
        try:
            return self._reset()
        except psycopg.Error:
            return False

    def close(self) -> None:
        """Close the connections."""
        for connection in self._connections():
            with suppress(psycopg.Error):
                connection.close()

    def _reset(self) -> bool:
        keeper = self._keeper
        pids = [connection.info.backend_pid for connection in self._connections() if not connection.closed]
        (ended,) = keeper.execute(_OTHERS, (END_SECONDS_MAX * 1000, pids)).fetchone() or (None,)
        pages = self._pages()
        if ended is False or max(pages.values()) > PAGES_MAX or self._read_definitions() != self._definitions:
            return False
        undo = ["SET LOCAL session_replication_role = replica"]  # without the guards
        undo += [f"DELETE FROM detent.{table}" for table, count in pages.items() if count and table not in self._filled]
        for table, rows in self._filled.items():
            if self._rows(table) != rows:
                undo += [f"DELETE FROM detent.{table}", self._insert(table, rows)]
        undo += [
            f"SELECT setval('detent.{name}', {state[0]}, {state[1]})"
            for name, state in self._sequences.items()
            if state
        ]
        with keeper.transaction():
            keeper.execute("; ".join(undo).encode())
        return True

    def _connections(self) -> list[psycopg.Connection[TupleRow]]:
        return [*self._idle, self._keeper, *([self._checker] if self._checker else [])]

    def _pages(self) -> dict[str, int]:
        return dict(self._keeper.execute(_TABLES).fetchall())

    def _read_definitions(self) -> list[Any]:
        return self._keeper.execute(_DEFINITIONS.encode()).fetchall() + self._keeper.execute(_RIGHTS).fetchall()

    def _rows(self, table: str) -> Any:
        found = self._keeper.execute(f"SELECT json_agg(t ORDER BY t::text)::text FROM detent.{table} t".encode())
        return (found.fetchone() or (None,))[0]

    def _insert(self, table: str, rows: str) -> str:
        literal = sql.Literal(rows).as_string(self._keeper)
        return f"INSERT INTO detent.{table} SELECT * FROM json_populate_recordset(NULL::detent.{table}, {literal})"


class ReusedDatabases:
    """The databases of one test process, all from one template. Most tests use one, some use more at once."""

    def __init__(self, cluster: Cluster, template: str) -> None:
        self._cluster = cluster
        self._template = template
        self._free: list[ReusedDatabase] = []
        self._lent: dict[str, ReusedDatabase] = {}

    @contextmanager
    def lend(self) -> Iterator[ReusedDatabase]:
        """Lend a database that is as good as new. Afterwards it is reset for the next test, or dropped."""
        database = self._free.pop() if self._free else self._create()
        self._lent[database.url] = database
        try:
            yield database
        finally:
            del self._lent[database.url]
            if database.reset():
                self._free.append(database)
            else:
                self._drop(database)

    def find(self, url: str) -> ReusedDatabase | None:
        """Return the database that is lent under this URL."""
        return self._lent.get(url)

    def close(self) -> None:
        """Drop every database."""
        while self._free:
            self._drop(self._free.pop())

    def _create(self) -> ReusedDatabase:
        name = self._cluster.new_name("detent_reused")
        return ReusedDatabase(name, self._cluster.create_database(name, template=self._template))

    def _drop(self, database: ReusedDatabase) -> None:
        database.close()
        self._cluster.drop_database(database.name)


def _connect(url: str) -> psycopg.Connection[TupleRow]:
    connection = psycopg.connect(url, autocommit=True)
    # Compiling a long statement costs more than its few rows.
    connection.execute("SET jit = off; SET lock_timeout = '10s'")
    return connection


def _all_in_one() -> bytes:
    """Return one statement for all invariants of rows."""
    parts = (
        f"SELECT '{one.name}', q.* FROM (\n{one.sql.rstrip().rstrip(';')}\n) AS q (entity, entity_id, detail)"
        for one in row_invariants("postgres")
    )
    return "\nUNION ALL\n".join(parts).encode()
