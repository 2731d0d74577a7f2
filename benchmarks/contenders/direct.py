"""A pipeline written directly in SQL, without an engine: one process, nothing in its way. On PostgreSQL 16 threads
fetch and five consolidate, each with a connection of its own; on SQLite, which has one writer, there is one.

It does what a careful person would write: each page is stored together with the next offset, each portion is upserted
and marked in one transaction, in the same number of statements as Detent's. Nobody else may take part, nobody takes
over when it dies, and nothing is on record.
"""

from __future__ import annotations

import json
import re
import sqlite3
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import psycopg

from benchmarks.contenders import program
from benchmarks.stones import TABLE, page_of, parts_of, upsert
from detent import Partition

FETCH, CHUNK = 2000, 100
NAMED = re.compile(r"(?<!:):(\w+)")
IS_POSTGRES = program.URL.startswith("postgresql:")
TABLES = (
    TABLE,
    "CREATE TABLE part (n BIGINT PRIMARY KEY, next_offset BIGINT NOT NULL, done INTEGER NOT NULL)",
    "CREATE TABLE raw (id TEXT PRIMARY KEY, data TEXT NOT NULL, part BIGINT NOT NULL, taken INTEGER DEFAULT 0)",
    "CREATE INDEX raw_untaken ON raw (id) WHERE taken = 0",
    "CREATE TABLE mark (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
)
STORE = {
    True: "INSERT INTO raw (id, data, part) SELECT u.id, u.data, %(part)s"
    " FROM unnest(%(ids)s::text[], %(datas)s::text[]) AS u (id, data)"
    " ON CONFLICT (id) DO UPDATE SET data = excluded.data, part = excluded.part",
    False: "INSERT INTO raw (id, data, part) VALUES (?, ?, ?)"
    " ON CONFLICT (id) DO UPDATE SET data = excluded.data, part = excluded.part",
}


class Direct:
    """On whichever database it is."""

    def __init__(self) -> None:
        if IS_POSTGRES:
            self._postgres = psycopg.connect(program.URL, autocommit=True)
        else:
            path = program.URL.removeprefix("sqlite:///")
            self._sqlite = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
            self._sqlite.execute("PRAGMA journal_mode = WAL")
            self._sqlite.execute("PRAGMA synchronous = FULL")

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Durable at its end."""
        if IS_POSTGRES:
            with self._postgres.transaction():
                yield
        else:
            self._sqlite.execute("BEGIN IMMEDIATE")
            yield
            self._sqlite.execute("COMMIT")

    def run(self, sql: str, params: dict[str, Any] | None = None) -> Any:
        """A statement with `:name` parameters."""
        if IS_POSTGRES:
            return self._postgres.execute(NAMED.sub(r"%(\1)s", sql).encode(), params)
        return self._sqlite.execute(sql, params or {})

    def store(self, part: int, records: Sequence[tuple[str, Any]]) -> None:
        """A page into the raw table."""
        pairs = [(key, json.dumps(data)) for key, data in records]
        if IS_POSTGRES:
            ids, datas = [key for key, _ in pairs], [data for _, data in pairs]
            self._postgres.execute(STORE[True].encode(), {"part": part, "ids": ids, "datas": datas})
        else:
            self._sqlite.executemany(STORE[False], [(key, data, part) for key, data in pairs])

    def mark(self, ids: Sequence[str]) -> None:
        """These are consolidated."""
        if IS_POSTGRES:
            self._postgres.execute("UPDATE raw SET taken = 1 WHERE id = ANY (%s)", (list(ids),))
        elif ids:
            self._sqlite.execute("UPDATE raw SET taken = 1 WHERE id BETWEEN ? AND ?", (ids[0], ids[-1]))


def prepare(count: int) -> None:
    """The tables."""
    direct = Direct()
    for statement in TABLES:
        direct.run(statement)


def pipeline(count: int) -> program.Answer:
    """From the first page to the watermark."""
    fetching, consolidating = (16, 5) if IS_POSTGRES else (1, 1)
    sides = [Direct() for _ in range(fetching)]
    began = time.perf_counter()
    parts = list(enumerate(parts_of(count)))
    with ThreadPoolExecutor(fetching) as threads:
        list(threads.map(lambda mine: _fetch_all(sides[mine], parts[mine::fetching]), range(fetching)))
    with ThreadPoolExecutor(consolidating) as threads:
        list(threads.map(_consolidate, sides[:consolidating]))
    sides[0].run("INSERT INTO mark (name, value) VALUES ('stones', 'now')")
    return program.rate(count, began)


def _consolidate(direct: Direct) -> None:
    """Portions, until none is left."""
    take = f"SELECT id, data FROM raw WHERE taken = 0 ORDER BY id LIMIT {FETCH}"
    if IS_POSTGRES:
        take += " FOR UPDATE SKIP LOCKED"
    rows: list[Any] = [None]
    while rows:
        with direct.transaction():
            rows = [(key, json.loads(data)) for key, data in direct.run(take).fetchall()]
            for start in range(0, len(rows), CHUNK):
                upsert(direct.run, rows[start : start + CHUNK], postgres=IS_POSTGRES)
            direct.mark([key for key, _ in rows])


def _fetch_all(direct: Direct, parts: Sequence[tuple[int, Partition]]) -> None:
    for n, part in parts:
        _fetch(direct, n, part)


def _fetch(direct: Direct, n: int, part: Partition) -> None:
    direct.run("INSERT INTO part (n, next_offset, done) VALUES (:n, 0, 0)", {"n": n})
    offset: int | None = 0
    while offset is not None:
        page = page_of(part, offset)
        with direct.transaction():
            direct.store(n, page.records)
            stands = {"n": n, "old": offset, "next": page.next or 0, "done": int(page.next is None)}
            direct.run("UPDATE part SET next_offset = :next, done = :done WHERE n = :n AND next_offset = :old", stands)
        offset = page.next


if __name__ == "__main__":
    program.serve({"prepare": prepare, "pipeline": pipeline})
