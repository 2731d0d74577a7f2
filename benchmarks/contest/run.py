"""One measuring loop: round by round, work by work, everybody in turn."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from subprocess import TimeoutExpired

import psycopg

from benchmarks.contest.arena import Failed, arena
from benchmarks.contest.contender import CONTENDERS, Contender
from benchmarks.contest.programme import ROUNDS_MAX, WORKS
from benchmarks.contest.quantities import amount
from benchmarks.contest.results import Results, Sample, facts
from benchmarks.contest.works import Size
from benchmarks.places import Places

__all__ = ["contest"]


def contest(
    places: Places,
    size: Size,
    *,
    works: Collection[str],
    names: Collection[str],
    say: Callable[[str], None],
    keep: Callable[[Results], None] = lambda results: None,
) -> Results:
    """Let everyone named do every work named. A round is A B C and the next one C B A, so that whatever else the
    machine does disturbs all alike; only figures of one round are divided by each other. What is there so far is
    kept after each work, since a run is long."""
    asked = [one for one in CONTENDERS if one.name in names]
    missing = [(one, why) for one in asked if (why := one.missing())]
    for one, why in missing:
        say(f"{one.name} is not run: {why}")
    present = [one for one in asked if one.missing() is None]
    with psycopg.connect(places.cluster.url) as connection:
        server = connection.info.parameter_status("server_version") or ""
    results = facts(server, size, missing)
    for number in range(1, size.rounds + 1):
        for work in (work for work in WORKS if work in works and number <= ROUNDS_MAX.get(work, size.rounds)):
            _in_turn(places, size, number, work, present, results, say)
            keep(results)
    return results


def _in_turn(
    places: Places,
    size: Size,
    number: int,
    work: str,
    present: Sequence[Contender],
    results: Results,
    say: Callable[[str], None],
) -> None:
    taking_part = [one for one in present if work in one.works]
    for one in taking_part if number % 2 else reversed(taking_part):
        began = time.monotonic()
        try:
            with arena(one, places) as found:
                reached = WORKS[work](found, size)
        except (Failed, TimeoutExpired) as error:
            say(f"{number} {work:12} {one.database:10} {one.name:15} failed: {error}")
            results.missing[f"{one.name}, {work}"] = "failed"
            continue
        took = time.monotonic() - began
        # A work that takes turns of its own fills as many rounds.
        for place, values in enumerate(reached if isinstance(reached, list) else [reached], start=number):
            results.samples.append(Sample(place, one.database, work, one.name, values))
            shown = ", ".join(f"{name} {amount(value)}" for name, value in values.items())
            say(f"{place} {work:12} {one.database:10} {one.name:15} {took:5.1f} s  {shown}")
