"""The pipeline of stones once more, with its staged records in a table of its own; plain, and async from end to end."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from detent import Page, Partition
from detent.app.detent import Detent
from detent.testing.stores import plain_connection
from tests.pipeline.stones import SOURCE, Source, Stones, make_table

__all__ = ["AsyncStones", "RawStones", "declare", "raw"]

STAGE = (
    "INSERT INTO raw (id, price, run, times) VALUES (:id, :price, :run, 1) "
    "ON CONFLICT (id) DO UPDATE SET price = excluded.price, run = excluded.run, times = raw.times + 1"
)
TAKE = (
    "INSERT INTO canonical (id, price, times, gone) SELECT id, price + :margin, 1, 0 FROM raw WHERE id = :id "
    "ON CONFLICT (id) DO UPDATE SET price = excluded.price, times = canonical.times + 1, gone = 0"
)
RETIRE = "UPDATE canonical SET gone = 1 WHERE id = :id"


@dataclass
class RawStones(Stones):
    """Only keys go through Detent's table. What is on a page need not be JSON."""

    def page(self, partition: Partition, offset: int) -> Page:
        page = super().page(partition, offset)
        return Page([(key, (stone["price"], {"a set"})) for key, stone in page.records], page.next)

    def stage(self, tx: Any, records: list[tuple[str, Any]]) -> None:
        for key, (price, _) in records:
            if key == SOURCE[0].stage_fails_on:
                raise ValueError(f"no room for {key}")
            tx.execute(STAGE, {"id": key, "price": price, "run": tx.run_id})

    def consolidate(self, tx: Any, keys: list[Any]) -> None:
        SOURCE[0].chunks.append(len(keys))
        for key in keys:
            assert tx.execute(TAKE, {"id": key, "margin": self.margin}).rowcount == 1


@dataclass
class AsyncStones:
    """The same as coroutines, and a plan that is an async generator."""

    margin: int = 10

    async def plan(self, since: datetime | None) -> AsyncIterator[Partition]:
        for part in SOURCE[0].plan(since):
            yield part

    async def page(self, partition: Partition, offset: int) -> Page:
        page = SOURCE[0].page(partition, offset)
        return Page([(key, (stone["price"],)) for key, stone in page.records], page.next)

    async def stage(self, tx: Any, records: list[tuple[str, Any]]) -> None:
        for key, (price,) in records:
            if key == SOURCE[0].stage_fails_on:
                raise ValueError(f"no room for {key}")
            await tx.execute(STAGE, {"id": key, "price": price, "run": tx.run_id})

    async def consolidate(self, tx: Any, keys: list[Any]) -> None:
        for key in keys:
            outcome = await tx.execute(TAKE, {"id": key, "margin": self.margin})
            assert outcome.rowcount == 1

    async def retire(self, tx: Any, keys: list[str]) -> None:
        SOURCE[0].retired += keys
        for key in keys:
            await tx.execute(RETIRE, {"id": key})


def declare(app: Detent, kind: type[Any], **options: Any) -> Source:
    """A fresh source, the pipeline, and both tables."""
    SOURCE[0] = Source()
    app.pipeline(watermark="stones", name="stones", **options)(kind)
    make_table(app)

    @app.task(name="make_raw")
    def make(ctx: Any) -> None:
        with ctx.commit() as tx:
            tx.execute("CREATE TABLE IF NOT EXISTS raw (id TEXT PRIMARY KEY, price INTEGER, run BIGINT, times INTEGER)")

    make.enqueue()
    return SOURCE[0]


def raw(url: str) -> dict[str, tuple[int, int, int]]:
    """Price, run, and how often it was staged, by id."""
    with closing(plain_connection(url)) as connection:
        rows = connection.execute("SELECT id, price, run, times FROM raw ORDER BY id").fetchall()
    return {key: tuple(rest) for key, *rest in rows}
