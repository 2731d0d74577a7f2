"""The life of a job in bare verbs, against the floor."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks import floor_postgres, floor_sqlite
from benchmarks.measure import Line, Rates, compare, interleaved, stopwatch
from benchmarks.places import Places
from benchmarks.sides import DetentSide, Side, drain, enqueue
from detent import Context, Detent

__all__ = ["run"]

WANTED_POSTGRES = {"enqueue in bulk": 0.8, "enqueue one by one": 0.85, "claim and finish": 0.6}
WANTED_SQLITE = {"enqueue in bulk": 0.5, "enqueue one by one": 0.85, "claim and finish": 0.6}


def run(places: Places, quick: bool) -> list[Line]:
    """Three lines a database, and one for the same jobs sent through the API."""
    count, single, repetitions = (5_000, 300, 3) if quick else (20_000, 1_500, 5)

    def lives(url: str, make: Callable[[str], Side], *, overlap: bool) -> Rates:
        with make(url) as side:
            entered = enqueue(side, count, single)
            places.settle(url)
            return {**entered, **drain(side, count + single, overlap=overlap)}

    def postgres() -> Rates:
        with places.postgres() as url:
            return lives(url, DetentSide, overlap=True)

    def postgres_floor() -> Rates:
        with places.postgres(floor_postgres.make) as url:
            return lives(url, floor_postgres.PostgresFloor, overlap=True)

    def postgres_api() -> Rates:
        with places.postgres() as url:
            return {"enqueue in bulk": sent_through_the_api(url, count)}

    def sqlite() -> Rates:
        with places.sqlite() as url:
            return lives(url, DetentSide, overlap=False)

    def sqlite_floor() -> Rates:
        with places.sqlite(floor_sqlite.make) as url:
            return lives(url, floor_sqlite.SqliteFloor, overlap=False)

    def sqlite_api() -> Rates:
        with places.sqlite() as url:
            return {"enqueue in bulk": sent_through_the_api(url, count)}

    lines: list[Line] = []
    for name, wanted, ours, floor, api in (
        ("PostgreSQL", WANTED_POSTGRES, postgres, postgres_floor, postgres_api),
        ("SQLite", WANTED_SQLITE, sqlite, sqlite_floor, sqlite_api),
    ):
        reached = interleaved({"ours": ours, "floor": floor, "api": api}, repetitions)
        lines += compare(name, reached["ours"], reached["floor"], wanted)
        lines += compare(f"{name}, app.enqueue_many", reached["api"], reached["floor"])
    return lines


def sent_through_the_api(url: str, count: int) -> float:
    """So many a second with one `enqueue_many` for all: describing, checking, numbering, writing, handles."""
    app = Detent(url)

    @app.task(name="bench.noop")
    def noop(ctx: Context, t: int) -> None:
        return None

    noop.enqueue(t=0)
    with stopwatch() as watch:
        app.enqueue_many(noop.call(t=number) for number in range(count))
    app.close()
    return count / watch.seconds
