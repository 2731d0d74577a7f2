"""The life of a job in bare verbs, against the floor."""

from __future__ import annotations

from contextlib import ExitStack

from benchmarks import floor_postgres, floor_sqlite
from benchmarks.measure import Line, Rates, compare, stopwatch
from benchmarks.places import Places
from benchmarks.sides import DetentSide, Side, lives
from detent import Context, Detent

__all__ = ["run"]

WANTED_POSTGRES = {"enqueue in bulk": 0.8, "enqueue one by one": 0.85, "claim and finish": 0.6}
WANTED_SQLITE = {"enqueue in bulk": 0.5, "enqueue one by one": 0.85, "claim and finish": 0.6}


def run(places: Places, quick: bool) -> list[Line]:
    """Three lines a database, and one for as many jobs sent through the API."""
    count, single, repetitions = (5_000, 300, 2) if quick else (20_000, 1_000, 5)

    def postgres() -> dict[str, Rates]:
        with ExitStack() as stack:
            ours, floor = (
                stack.enter_context(places.postgres()),
                stack.enter_context(places.postgres(floor_postgres.make)),
            )
            sides: dict[str, Side] = {
                "ours": stack.enter_context(DetentSide(ours)),
                "floor": stack.enter_context(floor_postgres.PostgresFloor(floor)),
            }
            reached = lives(sides, bulk=count, single=single, overlap=True, settle=lambda: places.settle(ours, floor))
        with places.postgres() as url:
            return {**reached, "api": {"enqueue in bulk": sent_through_the_api(url, count)}}

    def sqlite() -> dict[str, Rates]:
        with ExitStack() as stack:
            sides: dict[str, Side] = {
                "ours": stack.enter_context(DetentSide(stack.enter_context(places.sqlite()))),
                "floor": stack.enter_context(
                    floor_sqlite.SqliteFloor(stack.enter_context(places.sqlite(floor_sqlite.make)))
                ),
            }
            reached = lives(sides, bulk=count, single=single, overlap=False, settle=lambda: None)
        with places.sqlite() as url:
            return {**reached, "api": {"enqueue in bulk": sent_through_the_api(url, count)}}

    lines: list[Line] = []
    for name, wanted, measured in (("PostgreSQL", WANTED_POSTGRES, postgres), ("SQLite", WANTED_SQLITE, sqlite)):
        reached = [measured() for _ in range(repetitions)]
        floor = [one["floor"] for one in reached]
        lines += compare(name, [one["ours"] for one in reached], floor, wanted)
        lines += compare(f"{name}, app.enqueue_many", [one["api"] for one in reached], floor)
    return lines


def sent_through_the_api(url: str, count: int) -> float:
    """Return jobs per second with one `enqueue_many` for all: describing, checking, numbering, writing, handles."""
    app = Detent(url)

    @app.task(name="bench.noop")
    def noop(ctx: Context, t: int) -> None:
        return None

    noop.enqueue(t=0)
    with stopwatch() as watch:
        app.enqueue_many(noop.call(t=number) for number in range(count))
    app.close()
    return count / watch.seconds
