"""An application whose pipeline takes over a source that changes while it is fetched.

The source is a directory: how many records there are, and a file of changes, each with its time. So every worker sees
the same source, and the test changes it while they work.
"""

from __future__ import annotations

import asyncio
import os
import time
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from detent import Detent, Page, Partition, Retry
from detent.testing.stores import plain_connection

__all__ = ["Mirror", "OwnMirror", "Source", "app", "canonical", "make_app", "make_table"]

PARTS = 30
DIRECTORY = "PIPELINE_SOURCE"


@dataclass(frozen=True)
class Source:
    """What the supplier has."""

    directory: Path

    @property
    def size(self) -> int:
        return int((self.directory / "size").read_text())

    def changes(self) -> dict[int, tuple[int, datetime]]:
        """The newest price of each record that was changed, and when."""
        found = {}
        for line in (self.directory / "changes").read_text().splitlines():
            n, price, at = line.split()
            found[int(n)] = (int(price), datetime.fromisoformat(at))
        return found

    def waits(self, partition: Partition) -> bool:
        """The last partition is had when somebody has died: so a run does not end before."""
        return partition.key == f"p{PARTS - 1:02}" and not self._struck.exists()

    def strike(self) -> None:
        """Somebody has died."""
        self._struck.touch()

    @property
    def _struck(self) -> Path:
        return self.directory / "struck"

    def create(self, size: int) -> None:
        (self.directory / "size").write_text(str(size))
        (self.directory / "changes").touch()

    def change(self, n: int, price: int, at: datetime) -> None:
        """From now on it has another price."""
        with (self.directory / "changes").open("a") as file:
            file.write(f"{n} {price} {at.isoformat()}\n")


@dataclass
class Mirror:
    """The canonical table counts how often each record was written: nothing hides a double."""

    page_size: int

    def plan(self, since: datetime | None) -> list[Partition]:
        size = source().size
        each = -(-size // PARTS)
        stamp = None if since is None else since.isoformat()
        return [
            Partition(f"p{n:02}", {"first": n * each, "end": min(size, (n + 1) * each), "since": stamp})
            for n in range(PARTS)
        ]

    def page(self, partition: Partition, offset: int) -> Page:
        while source().waits(partition):
            time.sleep(0.02)
        asked = partition.payload
        changes = source().changes()
        if asked["since"] is None:
            mine: Any = range(asked["first"], asked["end"])
        else:
            since = datetime.fromisoformat(asked["since"])
            mine = sorted(n for n, (_, at) in changes.items() if asked["first"] <= n < asked["end"] and at >= since)
        found = mine[offset : offset + self.page_size]
        ahead = offset + self.page_size
        return Page(
            records=[(f"r{n:07}", {"price": changes.get(n, (n % 1000, None))[0]}) for n in found],
            next=ahead if ahead < len(mine) else None,
        )

    def consolidate(self, tx: Any, records: list[tuple[str, Any]]) -> None:
        rows = ", ".join(f"(:k{n}, :p{n}, 1)" for n in range(len(records)))
        values = {f"k{n}": key for n, (key, _) in enumerate(records)}
        values |= {f"p{n}": one["price"] for n, (_, one) in enumerate(records)}
        tx.execute(
            f"INSERT INTO canonical (id, price, times) VALUES {rows} "
            "ON CONFLICT (id) DO UPDATE SET price = excluded.price, times = canonical.times + 1",
            values,
        )


@dataclass
class OwnMirror(Mirror):
    """The same with its staged records in a table of its own, by coroutines. A record leaves that table when it is
    consolidated: what was staged twice, or taken twice, shows."""

    async def page(self, partition: Partition, offset: int) -> Page:  # type: ignore[override]
        while source().waits(partition):
            await asyncio.sleep(0.02)
        return Mirror.page(self, partition, offset)

    async def stage(self, tx: Any, records: list[tuple[str, Any]]) -> None:
        rows = ", ".join(f"(:k{n}, :p{n})" for n in range(len(records)))
        values = {f"k{n}": key for n, (key, _) in enumerate(records)}
        values |= {f"p{n}": one["price"] for n, (_, one) in enumerate(records)}
        await tx.execute(f"INSERT INTO raw (id, price) VALUES {rows}", values)

    async def consolidate(self, tx: Any, keys: list[Any]) -> None:  # type: ignore[override]
        names = {f"k{n}": key for n, key in enumerate(keys)}
        chosen = f"id IN (:{', :'.join(names)})"
        await tx.execute(
            f"INSERT INTO canonical (id, price, times) SELECT id, price, 1 FROM raw WHERE {chosen} "
            "ON CONFLICT (id) DO UPDATE SET price = excluded.price, times = canonical.times + 1",
            names,
        )
        gone = await tx.execute(f"DELETE FROM raw WHERE {chosen}", names)
        assert gone.rowcount == len(keys)


def source() -> Source:
    return Source(Path(os.environ[DIRECTORY]))


def make_app(url: str | None = None) -> Detent:
    app = Detent(url, page_slice=1.0)
    for kind, name in ((Mirror, "mirror"), (OwnMirror, "own")):
        app.pipeline(watermark=name, retry=Retry(20, base=0.05, cap=0.5))(kind)
    return app


def make_table(url: str) -> None:
    with closing(plain_connection(url)) as connection:
        connection.execute("CREATE TABLE canonical (id TEXT PRIMARY KEY, price BIGINT NOT NULL, times BIGINT NOT NULL)")
        connection.execute("CREATE TABLE raw (id TEXT PRIMARY KEY, price BIGINT NOT NULL)")
        connection.commit()


def canonical(url: str) -> dict[int, tuple[int, int]]:
    """Price, and how often it was written, by number."""
    with closing(plain_connection(url)) as connection:
        return {
            int(key[1:]): (price, times)
            for key, price, times in connection.execute("SELECT id, price, times FROM canonical").fetchall()
        }


app = make_app()
