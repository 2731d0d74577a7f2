"""P9: a slice is clean, a seed repeats its calls, and what a door should not do is found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from detent.testing.postgres import URL_VARIABLE, Cluster
from prove.figure import Budget, Tally
from prove.figures import hostile_input
from prove.hostile.calls import Call, Verdict, python_call
from prove.hostile.commands import command_call
from prove.hostile.requests import http_call
from prove.hostile.values import Values
from prove.hostile.world import World
from prove.kills.scene import databases
from tests.deadlines import scaled

pytestmark = pytest.mark.timeout(300)
IDS = dict.fromkeys(("done", "dead", "run", "waiting", "operation", "pending", "ops"), "1")


@pytest.fixture
def worlds(postgres_cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[World, World]]:
    """The application on a database of each kind."""
    monkeypatch.setenv(URL_VARIABLE, postgres_cluster.url)
    with (
        databases("sqlite") as small,
        databases("postgres") as large,
        next(small) as file,
        next(large) as server,
        World(file) as one,
        World(server) as other,
    ):
        yield one, other


def test_a_slice_is_clean(worlds: tuple[World, World], monkeypatch: pytest.MonkeyPatch) -> None:
    """S3: some hundred calls through every door, on both databases, and SQL functions."""
    monkeypatch.setattr(hostile_input, "_ROUND", 150)
    monkeypatch.setattr(hostile_input, "_SQL_EACH", 50)
    tally, accepted = Tally(), Counter[str]()
    budget = Budget("commit", 1, scaled(60), 1)
    hostile_input.play_round(budget, Values(Random(1)), *worlds, tally, accepted)
    assert tally.is_clean, tally.stories
    doors = ("Python", "HTTP", "command line")
    assert all(tally.injected[f"{door}, {kind}"] for door in doors for kind in ("SQLite", "PostgreSQL"))
    assert tally.injected["SQL functions, PostgreSQL"] == 50
    assert 0 < accepted.total() < 150


def test_a_seed_repeats_its_calls() -> None:
    def drawn(seed: int) -> list[str]:
        values = Values(Random(seed))
        return [draw(values, IDS).text for draw in (python_call, http_call, command_call) * 40]

    assert drawn(3) == drawn(3)
    assert drawn(3) != drawn(4)


def _enqueue(world: World) -> str:
    world.app.enqueue_named("say", "{}")
    return "enqueued"


def _raise(error: BaseException) -> Verdict:
    raise error


@pytest.mark.parametrize(
    ("call", "found"),
    [
        (lambda world: Verdict(world.kind == "SQLite", f"as {world.kind} sees it"), "SQLite: as SQLite sees it"),
        (
            lambda world: Verdict(False, "no", f"answered 500 {_enqueue(world)}"),
            "answered 500 enqueued, on SQLite",
        ),
        (lambda world: Verdict(False, f"no: {_enqueue(world)}"), "it was refused (no: enqueued) and has written"),
        (lambda world: _raise(KeyError("x")), "the door broke down: KeyError"),
    ],
)
def test_what_no_door_may_do_is_found(worlds: tuple[World, World], call: Any, found: str) -> None:
    """Two verdicts, an unexpected error, something written although it was refused, and a door that breaks down."""
    tally = Tally()
    hostile_input.send(Call("Python", "it", call), *worlds, tally, 7)
    assert tally.wrong
    assert any(found in story and story.startswith("seed 7, Python: it") for story in tally.stories), tally.stories


def test_rows_that_one_database_has_alone_are_found(worlds: tuple[World, World]) -> None:
    _enqueue(worlds[1])
    tally = Tally()
    hostile_input.compare(*worlds, tally, "now")
    assert tally.wrong == 1
    assert "'job': (7, 8)" in tally.stories[0]
