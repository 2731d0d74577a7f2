"""P9: hostile values through Python, HTTP, the command line and SQL functions, on both databases side by side."""

from __future__ import annotations

import itertools
import logging
import re
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from random import Random

from detent.testing.stores import dump, row_violations
from prove.coverage import errors_counted, transitions_of
from prove.figure import Budget, Tally
from prove.hostile.calls import Call, python_call, timed
from prove.hostile.commands import command_call
from prove.hostile.requests import http_call
from prove.hostile.sql_calls import SqlDoor
from prove.hostile.values import Values
from prove.hostile.world import World
from prove.kills.scene import databases

__all__ = ["compare", "play_round", "run", "send"]

_DOORS: tuple[Callable[[Values, dict[str, str]], Call], ...] = (python_call, http_call, command_call)
"""Who draws the calls of each door."""
_SHARES = (5, 4, 1)
_ROUND = 600
"""Calls on one pair of databases. Then there comes a new pair, since tables that have grown make every call slower."""
_SQL_EACH = 300
"""Calls of SQL functions at the end of each round, on the PostgreSQL of the pair."""
_DRAWN = re.compile(r"\b[0-9a-f]{32}\b")
"""Identities of databases, which are drawn."""
_BEFORE, _SHOWN = 80, 400
"""Characters of two answers that are shown before and after the place where they begin to differ."""
_FINDINGS_MAX = 20
_NOT_COUNTED = {
    *(
        "ids",
        "test_clock",
        "installed",
        "migration",
        "lane_group",
        "lane",
        "service",
        "finished_count",
        "finished_total",
    ),
    *(
        "finished_delta",
        "succeeded_batch",
        "job_span",
        "unsuccessful",
        "transition_hour",
        "transition_rate",
        "transition_delta",
    ),
    *("signal_key", "task_secret", "identity"),
}
"""Tables that differ between the databases: ids, lanes, and figures that are added up at other times."""


def run(budget: Budget) -> Tally:
    """Send calls until the count is reached or the time is up. What was injected counts once for each database."""
    tally = Tally()
    values = Values(Random(budget.seed))
    most = budget.count(commit=6_000, nightly=200_000, release=2_000_000)
    logging.disable(logging.CRITICAL)  # the server logs each error that it answers
    accepted: Counter[str] = Counter()
    with errors_counted() as errors, ExitStack() as exits:
        small = exits.enter_context(databases("sqlite"))
        large = exits.enter_context(databases("postgres"))
        while not budget.is_spent and tally.injected.total() < most and len(tally.stories) < _FINDINGS_MAX:
            with next(small) as file, next(large) as server, World(file) as one, World(server) as other:
                play_round(budget, values, one, other, tally, accepted)
    tally.covered.update(errors)
    sent = {door: tally.injected[f"{door}, SQLite"] for door in accepted}
    shares = ", ".join(f"{100 * accepted[door] // max(1, sent[door])} % of {door}" for door in sorted(sent))
    tally.notes.append(f"accepted: {shares}; all others were refused alike by both databases")
    return tally


def play_round(budget: Budget, values: Values, one: World, other: World, tally: Tally, accepted: Counter[str]) -> None:
    """Send calls to both; then both do what they were given, and must have come to the same."""
    if one.ids != other.ids:
        raise AssertionError(f"the databases do not begin alike: {one.ids}, {other.ids}")
    for number in itertools.count(1):
        if number > _ROUND or budget.is_spent or len(tally.stories) >= _FINDINGS_MAX:
            break
        call = values.random.choices(_DOORS, _SHARES)[0](values, one.ids)
        accepted[call.door] += send(call, one, other, tally, budget.seed)
    compare(one, other, tally, "after these calls")
    for world in (one, other):
        world.harness.work()
    compare(one, other, tally, "after the work")
    tally.covered.update(transitions_of(one.url) + transitions_of(other.url))
    _call_functions(values, other, tally, budget)


def send(call: Call, one: World, other: World, tally: Tally, seed: int) -> bool:
    """Send a call to both databases. Return whether it was accepted."""
    said = []
    before = one.version()
    for world in (one, other):
        verdict, hung = timed(call, world)
        verdict = verdict._replace(said=_DRAWN.sub("…", verdict.said))
        tally.injected[f"{call.door}, {world.kind}"] += 1
        said.append(verdict)
        if hung:
            tally.stuck += 1
            _tell(tally, seed, call, f"it took too long on {world.kind}")
        if verdict.wrong:
            tally.wrong += 1
            _tell(tally, seed, call, f"{verdict.wrong}, on {world.kind}")
        if world is one and not verdict.accepted and one.version() != before:
            tally.wrong += 1
            _tell(tally, seed, call, f"it was refused ({verdict.said:.200}) and has written something")
    if said[0].said != said[1].said and not any(verdict.wrong for verdict in said):
        tally.wrong += 1
        same = (a == b for a, b in zip(said[0].said, said[1].said, strict=False))
        place = max(0, next((n for n, is_same in enumerate(same) if not is_same), 0) - _BEFORE)
        texts = [verdict.said[place : place + _SHOWN] for verdict in said]
        _tell(tally, seed, call, f"SQLite: {texts[0]}\nPostgreSQL: {texts[1]}")
    return said[0].accepted


def compare(one: World, other: World, tally: Tally, when: str) -> None:
    """Both databases must be sound, and have the same number of rows in each table."""
    for world in (one, other):
        for violation in row_violations(world.app.store, world.url):
            tally.wrong += 1
            tally.stories.append(f"{when}, on {world.kind}: {violation}")
    rows = [
        {name: len(found) for name, found in dump(world.url).items() if name not in _NOT_COUNTED}
        for world in (one, other)
    ]
    if differs := {
        name: (rows[0].get(name), rows[1].get(name))
        for name in rows[0] | rows[1]
        if rows[0].get(name) != rows[1].get(name)
    }:
        tally.wrong += 1
        tally.stories.append(f"{when}, the numbers of rows differ (SQLite, PostgreSQL): {differs}")


def _call_functions(values: Values, world: World, tally: Tally, budget: Budget) -> None:
    with SqlDoor(world.url) as door:
        for _ in range(_SQL_EACH):
            if budget.is_spent or len(tally.stories) >= _FINDINGS_MAX:
                break
            text, verdict = door.call(values, world.ids)
            tally.injected["SQL functions, PostgreSQL"] += 1
            if verdict.wrong:
                tally.wrong += 1
                tally.stories.append(f"seed {budget.seed}: SELECT {text}\n{verdict.wrong}")


def _tell(tally: Tally, seed: int, call: Call, found: str) -> None:
    tally.stories.append(f"seed {seed}, {call.door}: {call.text}\n{found}")
