"""Damaged pages of a SQLite file: which page, and what became of its bytes."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

__all__ = ["PAGES", "PAGES_BESIDE_JOBS", "PageDamage", "spoil_page", "spoil_page_in_use"]

HEADER = 100
"""Bytes of the file's own header, which the first page begins with."""


def zeroed(page: bytearray) -> None:
    """Nothing of the page was ever written."""
    page[:] = bytes(len(page))


def of_no_kind(page: bytearray) -> None:
    """The page says that it is of a kind which does not exist."""
    page[0] = 0x77


def cells_elsewhere(page: bytearray) -> None:
    """The directory of the page points beyond its end."""
    page[8:12] = b"\xff\xfe\xff\xfd"


@dataclass(frozen=True, slots=True)
class PageDamage:
    """The first page of a table or index of Detent's, spoiled in one way."""

    thing: str
    spoil: Callable[[bytearray], None]

    @property
    def name(self) -> str:
        return f"{self.thing}-{self.spoil.__name__}"


# Every claim asks which queues are paused, so no job runs while that cannot be told.
_THINGS = (
    *("event", "execution", "transition_log", "dead", "job_key", "waiting", "event_one_per_key", "lease_expiring"),
    "queue",
)
PAGES = [PageDamage(thing, spoil) for thing in _THINGS for spoil in (zeroed, of_no_kind, cells_elsewhere)]


_BESIDE_JOBS = (
    *("schedule", "rate_limit", "limit_slot", "alert", "alert_policy", "alert_notice", "alert_delivery", "operation"),
    *(
        "recovery",
        "task_times",
        "failure_report",
        "batch_run",
        "target",
        "pipeline_run",
        "partition",
        "watermark",
        "ops_run",
    ),
    *("service", "worker", "declaration", "horizon"),
)
PAGES_BESIDE_JOBS = [PageDamage(thing, zeroed) for thing in _BESIDE_JOBS]
"""Tables that ordinary jobs do not need."""


def spoil_page_in_use(path: Path, damage: PageDamage) -> None:
    """Damage a file that this process has open. Another process does it: to close a file gives up all locks that a
    process holds on it, those of SQLite among them."""
    how = [sys.executable, "-m", "tests.store.invariants.pages", str(path), damage.thing, damage.spoil.__name__]
    subprocess.run(how, check=True, cwd=Path(__file__).parents[3])


def spoil_page(path: Path, damage: PageDamage) -> None:
    """Damage a file that this process does not have open."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        ((size,),) = connection.execute("PRAGMA page_size").fetchall()
        ((root,),) = connection.execute(
            "SELECT rootpage FROM sqlite_master WHERE name = ?", (f"detent_{damage.thing}",)
        ).fetchall()
    with open(path, "r+b") as file:
        file.seek((root - 1) * size)
        page = bytearray(file.read(size))
        damage.spoil(page)
        file.seek((root - 1) * size)
        file.write(page)


if __name__ == "__main__":
    WAYS = {spoil.__name__: spoil for spoil in (zeroed, of_no_kind, cells_elsewhere)}
    spoil_page(Path(sys.argv[1]), PageDamage(sys.argv[2], WAYS[sys.argv[3]]))
