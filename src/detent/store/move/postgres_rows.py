"""Rows of PostgreSQL as SQLite stores them, both ways, in the binary format of the server.

A time travels as its microseconds since 1970, so nothing is rounded, and no object is made of it.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Generator, Sequence
from typing import Any

import psycopg
from psycopg import capabilities
from psycopg.abc import Buffer
from psycopg.adapt import Dumper, Loader
from psycopg.pq import Format

from detent.store.move.contract import Key, Row
from detent.store.move.tables import Table
from detent.store.postgres.driver.connection import Connection

__all__ = ["copy_rows", "count_rows", "placeholders", "read_rows"]

_EPOCH = 946_684_800_000_000
"""The beginning of PostgreSQL's time, 2000-01-01, in microseconds since 1970."""
_INT8 = struct.Struct("!q")
_ARRAY = struct.Struct("!iiIii")  # dimensions, whether there are nulls, type of the elements, length, first index
_INT8_OID = 20
_CHUNK = 100
"""Rows that are read at once, if libpq can."""


class _TimeLoader(Loader):
    format = Format.BINARY

    def load(self, data: Buffer) -> int:
        micros: int = _INT8.unpack(data)[0]
        return micros + _EPOCH


class _BooleanLoader(Loader):
    format = Format.BINARY

    def load(self, data: Buffer) -> int:
        return bytes(data)[0]


class _IdsLoader(Loader):
    format = Format.BINARY

    def load(self, data: Buffer) -> str:
        found = bytes(data)
        if len(found) <= 12:
            return "[]"
        length = struct.unpack_from("!i", found, 12)[0]
        return json.dumps([_INT8.unpack_from(found, 24 + 12 * at)[0] for at in range(length)])


class _TimeDumper(Dumper):
    format = Format.BINARY

    def dump(self, obj: int) -> bytes:
        return _INT8.pack(obj - _EPOCH)


class _IdsDumper(Dumper):
    format = Format.BINARY

    def dump(self, obj: str) -> bytes:
        ids = json.loads(obj)
        if not ids:
            return struct.pack("!iiI", 0, 0, _INT8_OID)
        return _ARRAY.pack(1, 0, _INT8_OID, len(ids), 1) + b"".join(struct.pack("!iq", 8, one) for one in ids)


class _Time:
    """What `_TimeDumper` is registered for. The dumpers are found by the types of the columns."""


class _Ids:
    """What `_IdsDumper` is registered for."""


def read_rows(connection: Connection, table: Table, after: Key | None) -> Generator[Row, None, None]:
    """Yield the rows of a table after a key, in the order of their keys. The server sends them as they are read."""
    names, key = ", ".join(table.names), ", ".join(table.key)
    where = f" WHERE ({key}) > ({placeholders(len(table.key), '%s')})" if after is not None else ""
    sql = f"SELECT {names} FROM detent.{table.name}{where} ORDER BY {key}"
    with connection.cursor() as cursor:
        for kind, loader in (("timestamptz", _TimeLoader), ("bool", _BooleanLoader), ("int8[]", _IdsLoader)):
            cursor.adapters.register_loader(_oid(cursor, kind), loader)
        params = None if after is None else _key_params(table, after)
        size = _CHUNK if capabilities.has_stream_chunked() else 1
        yield from cursor.stream(sql.encode(), params, binary=True, size=size)


def copy_rows(connection: Connection, table: Table, rows: Sequence[Row]) -> None:
    """Insert rows with COPY."""
    with connection.cursor() as cursor:
        for kind, stands_for, dumper in (("timestamptz", _Time, _TimeDumper), ("int8[]", _Ids, _IdsDumper)):
            typed = type(dumper.__name__, (dumper,), {"oid": _oid(cursor, kind)})
            cursor.adapters.register_dumper(stands_for, typed)
        sql = f"COPY detent.{table.name} ({', '.join(table.names)}) FROM STDIN (FORMAT BINARY)"
        with cursor.copy(sql.encode()) as copy:
            copy.set_types([column.kind for column in table.columns])
            write: Callable[[Row], None] = copy.write_row
            for row in rows:
                write(row)


def count_rows(connection: Connection, table: Table) -> int:
    """Count the rows of a table."""
    found = connection.execute(f"SELECT count(*) FROM detent.{table.name}".encode()).fetchone()
    assert found is not None
    return int(found[0])


def placeholders(count: int, one: str) -> str:
    """Return that many placeholders for parameters."""
    return ", ".join([one] * count)


def _key_params(table: Table, after: Key) -> list[Any]:
    kinds = {column.name: column.kind for column in table.columns}
    return [_key_param(kinds[name], value) for name, value in zip(table.key, after, strict=True)]


def _key_param(kind: str, value: Any) -> Any:
    from detent.model.clock import from_micros

    match kind:
        case "timestamptz":
            return from_micros(value)
        case "bool":
            return bool(value)
        case _:
            return value


def _oid(cursor: psycopg.Cursor[Any], kind: str) -> int:
    return cursor.adapters.types.get_oid(kind)
