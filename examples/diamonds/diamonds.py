"""A supplier's diamonds, priced by our rules, in our own table: a pipeline with a watermark.

The supplier is at SUPPLIER_URL, the database at DETENT_DATABASE_URL. `detent worker diamonds:app` works; a run is
started by `detent runs start diamonds --app diamonds:app`, or by a schedule.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlencode
from urllib.request import urlopen

from detent import Context, Detent, Page, Partition, Retry, split_by_count

app = Detent()

PRICE_MAX = 1_000_000
MARGINS = ((0.5, 118), (1.0, 124), (2.0, 131), (99.0, 140))
"""Pricing rules: the largest weight in carats, and the price in percent of the cost."""
TABLE = """
CREATE TABLE diamonds (
  id TEXT PRIMARY KEY, carat DOUBLE PRECISION, shape TEXT, cost BIGINT, price BIGINT, available INTEGER, seen BIGINT
)
"""
COLUMNS = ("id", "carat", "shape", "cost", "price")


def ask(path: str, **words: Any) -> Any:
    """What the supplier says. An error is raised, and the page is asked for again."""
    query = urlencode({name: value for name, value in words.items() if value is not None})
    with urlopen(f"{os.environ['SUPPLIER_URL']}/{path}?{query}", timeout=10) as answer:
        return json.load(answer)


@app.pipeline(name="diamonds", watermark="diamonds", retry=Retry(8, base=0.2, cap=5))
@dataclass
class Diamonds:
    """Thirty partitions by price, so that each has about as many stones as the others."""

    parts: int = 30
    page_size: int = 200

    def plan(self, since: datetime | None) -> list[Partition]:
        """By asking the supplier how many stones lie where."""
        stamp = None if since is None else since.isoformat()

        def count(low: int, high: int) -> int:
            found: int = ask("count", low=low, high=high, since=stamp)["count"]
            return found

        ranges = split_by_count(count, 0, PRICE_MAX, parts=self.parts)
        return [Partition(part.key, part.payload | {"since": stamp}) for part in ranges]

    def page(self, partition: Partition, offset: int) -> Page:
        """The stones of one page, as they come."""
        asked = partition.payload
        found = ask(
            "stones", low=asked["low"], high=asked["high"], since=asked["since"], offset=offset, limit=self.page_size
        )
        return Page(records=[(stone["id"], stone) for stone in found["stones"]], next=found["next"])

    def consolidate(self, tx: Any, records: list[tuple[str, Any]]) -> None:
        """Priced and upserted: in one statement, in the transaction that marks these stones as consolidated."""
        rows: list[str] = []
        values: dict[str, Any] = {}
        for n, (_, stone) in enumerate(records):
            stone["price"] = price_of(stone["carat"], stone["cost"])
            rows.append("(" + ", ".join(f":{name}{n}" for name in COLUMNS) + ", 1, 1)")
            values |= {f"{name}{n}": stone[name] for name in COLUMNS}
        tx.execute(
            f"INSERT INTO diamonds ({', '.join(COLUMNS)}, available, seen) VALUES {', '.join(rows)} "
            "ON CONFLICT (id) DO UPDATE SET carat = excluded.carat, shape = excluded.shape, cost = excluded.cost, "
            "price = excluded.price, available = 1, seen = diamonds.seen + 1",
            values,
        )

    def retire(self, tx: Any, keys: list[str]) -> None:
        """Sold by somebody else: no longer for sale, but still known."""
        for key in keys:
            tx.execute("UPDATE diamonds SET available = 0 WHERE id = :id", {"id": key})


def price_of(carat: float, cost: int) -> int:
    """What we ask for a stone."""
    percent = next(percent for up_to, percent in MARGINS if carat <= up_to)
    return cost * percent // 100


@app.task(name="diamonds.prepare")
def prepare(ctx: Context) -> None:
    """Our own table."""
    with ctx.commit() as tx:
        tx.execute(TABLE)
