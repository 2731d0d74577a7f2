"""What the guards cost: the same verbs on the same schema, with its triggers and without."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import psycopg

from benchmarks.measure import Line, Rates, compare
from benchmarks.places import Places, migrate
from benchmarks.sides import DetentSide, lives

__all__ = ["run"]

_DROP = """
DO $$ DECLARE found record; BEGIN
  FOR found IN SELECT tgname, tgrelid::regclass AS on_table FROM pg_trigger WHERE NOT tgisinternal LOOP
    EXECUTE format('DROP TRIGGER %I ON %s', found.tgname, found.on_table);
  END LOOP;
END $$
"""


def run(places: Places, quick: bool) -> list[Line]:
    """One minus the ratio is the guards' share of the time. Nothing overlaps, or the second core would hide it."""
    count, repetitions = (5_000, 2) if quick else (20_000, 5)

    def measured(guarded: str, bare: str) -> dict[str, Rates]:
        with DetentSide(guarded) as ours, DetentSide(bare) as base:
            sides = {"guarded": ours, "bare": base}
            return lives(sides, bulk=count, single=0, overlap=False, settle=lambda: places.settle(guarded, bare))

    def postgres() -> dict[str, Rates]:
        with places.postgres() as guarded, places.postgres(postgres_without_guards) as bare:
            return measured(guarded, bare)

    def sqlite() -> dict[str, Rates]:
        with places.sqlite() as guarded, places.sqlite(sqlite_without_guards) as bare:
            return measured(guarded, bare)

    lines: list[Line] = []
    for name, one_life in (("PostgreSQL", postgres), ("SQLite", sqlite)):
        reached = [one_life() for _ in range(repetitions)]
        lines += compare(name, [one["guarded"] for one in reached], [one["bare"] for one in reached])
    return lines


def postgres_without_guards(url: str) -> None:
    """Detent's schema without its triggers."""
    migrate(url)
    with psycopg.connect(url) as connection:
        connection.execute(_DROP)


def sqlite_without_guards(url: str) -> None:
    """Detent's schema without its triggers."""
    migrate(url)
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection:
        names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for (name,) in names:
            connection.execute(f"DROP TRIGGER {name}")
