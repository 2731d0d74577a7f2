"""A source of stones that tests can change, break and slow down, and the pipeline that takes them over."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from detent import Page, Partition
from detent.app.detent import Detent
from detent.testing.harness import Harness

__all__ = ["Source", "Stones", "canonical", "declare", "make_table", "worked_off"]

PAGE = 3


@dataclass
class Source:
    """What the supplier has: stones by id, with when each was changed; and what goes wrong with it."""

    stones: dict[str, tuple[int, datetime]] = field(default_factory=dict)
    parts: int = 2
    asked: Counter[tuple[str, Any]] = field(default_factory=Counter)
    plans: list[datetime | None] = field(default_factory=list)
    fails_at: set[tuple[str, Any]] = field(default_factory=set)
    odd_page: Any = None
    odd_plan: Any = None
    consolidated: Counter[str] = field(default_factory=Counter)
    chunks: list[int] = field(default_factory=list)
    consolidate_fails_on: str | None = None
    retired: list[str] = field(default_factory=list)
    stage_fails_on: str | None = None

    def put(self, ids: range, price: int, at: datetime) -> None:
        """Stones are new, or change."""
        self.stones.update({f"d{n:04}": (price, at) for n in ids})

    def plan(self, since: datetime | None) -> Iterator[Partition]:
        self.plans.append(since)
        if self.odd_plan is not None:
            return self.odd_plan()  # type: ignore[no-any-return]
        stamp = None if since is None else since.isoformat()
        return iter([Partition(f"part-{n}", {"n": n, "since": stamp}) for n in range(self.parts)])

    def page(self, partition: Partition, offset: int) -> Page:
        self.asked[partition.key, offset] += 1
        if (partition.key, offset) in self.fails_at:
            raise ConnectionError(f"no answer for {partition.key} at {offset}")
        if self.odd_page is not None:
            return self.odd_page(partition, offset)  # type: ignore[no-any-return]
        since = partition.payload["since"]
        mine = [
            (key, {"price": price})
            for n, (key, (price, at)) in enumerate(sorted(self.stones.items()))
            if n % self.parts == partition.payload["n"] and (since is None or at >= datetime.fromisoformat(since))
        ]
        ahead = offset + PAGE
        return Page(records=mine[offset:ahead], next=ahead if ahead < len(mine) else None)


@dataclass
class Stones:
    """The pipeline, as a user writes one. The source stands in the module, as a client of an API would."""

    margin: int = 10

    def plan(self, since: datetime | None) -> Iterator[Partition]:
        return SOURCE[0].plan(since)

    def page(self, partition: Partition, offset: int) -> Page:
        return SOURCE[0].page(partition, offset)

    def consolidate(self, tx: Any, records: list[tuple[str, Any]]) -> None:
        SOURCE[0].chunks.append(len(records))
        for key, stone in records:
            if key == SOURCE[0].consolidate_fails_on:
                raise ValueError(f"no price for {key}")
            tx.execute(
                "INSERT INTO canonical (id, price, times, gone) VALUES (:id, :price, 1, 0) "
                "ON CONFLICT (id) DO UPDATE SET price = excluded.price, times = canonical.times + 1, gone = 0",
                {"id": key, "price": stone["price"] + self.margin},
            )

    def retire(self, tx: Any, keys: list[str]) -> None:
        SOURCE[0].retired += keys
        for key in keys:
            tx.execute("UPDATE canonical SET gone = 1 WHERE id = :id", {"id": key})


SOURCE: list[Source] = [Source()]


def declare(app: Detent, **options: Any) -> Source:
    """A fresh source, the pipeline on this application, and its table."""
    SOURCE[0] = Source()
    app.pipeline(watermark="stones", **options)(Stones)
    make_table(app)
    return SOURCE[0]


def make_table(app: Detent) -> None:
    """The user's own table."""

    @app.task(name="make_table")
    def make(ctx: Any) -> None:
        with ctx.commit() as tx:
            tx.execute(
                "CREATE TABLE IF NOT EXISTS canonical (id TEXT PRIMARY KEY, price INTEGER, times INTEGER, gone INTEGER)"
            )

    make.enqueue()


def canonical(url: str) -> dict[str, tuple[int, int, int]]:
    """Price, how often it was written, and whether it is gone, by id."""
    from contextlib import closing

    from detent.testing.stores import plain_connection

    with closing(plain_connection(url)) as connection:
        rows = connection.execute("SELECT id, price, times, gone FROM canonical ORDER BY id").fetchall()
    return {key: tuple(rest) for key, *rest in rows}


def worked_off(harness: Harness, value: Any, **options: Any) -> Any:
    """A run that has ended, one way or the other."""
    run = harness.app.runs.start(value, **options)
    for _ in range(8):
        harness.work()
        if run.refresh().ended:
            break
        harness.clock.advance(70)
    return run
