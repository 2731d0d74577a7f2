"""The pipeline that is measured: a source in memory, a canonical table, and the statements that both sides share.

Thirty partitions, pages of 100 records; consolidated 2,000 at a time, 100 in one statement. With Detent around it, and
written directly in SQL: pages with their offset in one transaction, portions with their mark in one transaction.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from detent import Page, Partition

__all__ = ["PAGE", "PARTS", "STONE", "TABLE", "page_of", "parts_of", "upsert"]

PARTS = 30
PAGE = 100
TABLE = "CREATE TABLE stone (id TEXT PRIMARY KEY, carat REAL, cut TEXT, cost BIGINT, price BIGINT)"
SHAPES = ("round", "oval", "pear", "cushion")
_UPSERT = (
    " ON CONFLICT (id) DO UPDATE SET carat = excluded.carat, cut = excluded.cut, cost = excluded.cost,"
    " price = excluded.price"
)
STONE = {
    True: "INSERT INTO stone (id, carat, cut, cost, price) SELECT r.id, r.carat, r.cut, r.cost, r.price"
    " FROM json_to_recordset(CAST(:rows AS json)) AS r (id text, carat double precision, cut text, cost bigint,"
    f" price bigint){_UPSERT}",
    False: "INSERT INTO stone (id, carat, cut, cost, price) SELECT value ->> 'id', value ->> 'carat', value ->> 'cut',"
    f" value ->> 'cost', value ->> 'price' FROM json_each(:rows) WHERE true{_UPSERT}",
}
"""On PostgreSQL (True), and on SQLite."""


def parts_of(count: int) -> list[Partition]:
    """A partition of equal size for each part."""
    each = -(-count // PARTS)
    return [
        Partition(f"part-{n:02}", {"first": n * each, "end": min(count, (n + 1) * each)})
        for n in range(PARTS)
        if n * each < count
    ]


def page_of(partition: Partition, offset: int) -> Page:
    """As a supplier's API would give it."""
    first = partition.payload["first"] + offset
    end = min(first + PAGE, partition.payload["end"])
    records = [
        (
            f"stone-{n:08}",
            {
                "id": f"stone-{n:08}",
                "carat": 0.3 + n % 300 / 100,
                "shape": SHAPES[n % 4],
                "colour": "DEFGHIJ"[n % 7],
                "clarity": ("IF", "VVS1", "VS1", "SI1")[n % 4],
                "cost": 20_000 + n % 90_000,
                "supplier": {"id": n % 50, "name": f"supplier {n % 50}", "certificate": f"GIA {n:010}"},
                "updated_at": "2026-01-01T00:00:00Z",
            },
        )
        for n in range(first, end)
    ]
    return Page(records=records, next=offset + PAGE if end < partition.payload["end"] else None)


def upsert(
    execute: Callable[[str, dict[str, Any]], Any], records: Sequence[tuple[str, Any]], *, postgres: bool
) -> None:
    """Price some records, and put them into the canonical table in one statement."""
    rows = [
        {
            "id": key,
            "carat": one["carat"],
            "cut": one["shape"],
            "cost": one["cost"],
            "price": one["cost"] * (115 if one["carat"] < 1 else 125) // 100,
        }
        for key, one in records
    ]
    execute(STONE[postgres], {"rows": json.dumps(rows)})
