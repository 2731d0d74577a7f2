"""What the guards cost: the same verbs on the same schema, with its triggers and without."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import psycopg

from benchmarks.measure import Line, Rates, compare, interleaved, stopwatch
from benchmarks.places import Places, migrate
from benchmarks.sides import BULK, DetentSide, drain

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
    count, repetitions = (5_000, 3) if quick else (20_000, 5)

    def life(url: str) -> Rates:
        with DetentSide(url) as side:
            jobs = side.jobs(1_000_000, count)
            with stopwatch() as watch:
                for start in range(0, count, BULK):
                    side.enqueue(jobs[start : start + BULK])
            places.settle(url)
            return {
                "claim and finish": drain(side, count, overlap=False)["claim and finish"],
                "enqueue in bulk": count / watch.seconds,
            }

    def postgres() -> Rates:
        with places.postgres() as url:
            return life(url)

    def postgres_without() -> Rates:
        with places.postgres(postgres_without_guards) as url:
            return life(url)

    def sqlite() -> Rates:
        with places.sqlite() as url:
            return life(url)

    def sqlite_without() -> Rates:
        with places.sqlite(sqlite_without_guards) as url:
            return life(url)

    lines: list[Line] = []
    for name, guarded, bare in (("PostgreSQL", postgres, postgres_without), ("SQLite", sqlite, sqlite_without)):
        reached = interleaved({"guarded": guarded, "bare": bare}, repetitions)
        lines += compare(name, reached["guarded"], reached["bare"])
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
