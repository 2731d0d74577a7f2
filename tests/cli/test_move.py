"""`detent move`: a whole database into another one, from the command line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from detent import Detent
from detent.testing.stores import is_sqlite
from tests.cli.shell import Shell


@pytest.fixture
def target(request: pytest.FixtureRequest, ready_url: str, tmp_path: Path) -> str:
    """An empty database of the other kind."""
    if is_sqlite(ready_url):
        return str(request.getfixturevalue("postgres_url"))
    return f"sqlite:///{tmp_path}/target.db"


@pytest.fixture
def job_id(ready_url: str) -> Iterator[int]:
    """A job that waits in the source."""
    with closing(Detent(ready_url)) as app:
        (found,) = app.enqueue_many([app.task(name="wait")(lambda ctx: None).call()])
        yield found.id


def test_a_database_moves_and_the_old_one_says_where(shell: Shell, target: str, job_id: int, ready_url: str) -> None:
    """J15: `doctor`, `why` and every command that writes."""
    words = ("move", "--from", ready_url, "--to", target)
    asked = shell.run(*words)
    assert asked.code == 2
    assert "needs --yes" in asked.err
    moved = shell.run(*words, "--yes", "--actor", "ana", "--reason", "it grew")
    assert moved.code == 0, moved.err
    assert ["job", "1"] in moved.rows
    assert "Not moved: your own tables" in moved.err
    refused = shell.run("queues", "pause", "default")
    assert refused.code == 5
    assert "it was moved to" in refused.err
    doctor = shell.run("doctor")
    assert doctor.code == 1
    assert any(row[:2] == ["fail", "move"] for row in doctor.rows)
    assert "was moved to" in shell.run("jobs", "why", job_id).out
    there = Shell(shell.directory, target)
    assert "waits for a worker" in there.run("jobs", "why", job_id).out
    lines = there.run("record", "search", "--entity", "database", "--json").json
    assert [(line["to_state"], line["actor"], line["reason"]) for line in lines] == [
        ("open", "ana", "it grew"),
        ("moving", "ana", "it grew"),
    ]
    again = shell.run(*words, "--yes", "--json").json
    assert (again["copied"], again["to"]) == (0, moved_name(target))
    undone = shell.run("move", "--from", ready_url, "--cancel")
    assert undone.code == 4
    assert "move it from there into a new database" in undone.err


def moved_name(url: str) -> str:
    """What messages call the database."""
    from detent.store.open import open_store

    return open_store(url).name


def test_what_makes_no_sense_is_refused(shell: Shell, target: str, ready_url: str) -> None:
    for words, said in (
        (("--from", ready_url), "Missing option '--to'"),
        (("--from", ready_url, "--to", target, "--cancel"), "--cancel goes with --from alone"),
        (("--from", ready_url, "--to", target, "--database", target), "--from and --to name the databases"),
    ):
        ended = shell.run("move", *words, "--yes")
        assert ended.code == 2
        assert said in ended.err
    same = shell.run("move", "--from", ready_url, "--to", ready_url, "--yes")
    assert same.code == 4
    assert "the target is the same database" in same.err
    nothing = shell.run("move", "--from", ready_url, "--cancel", "--json")
    assert (nothing.code, nothing.json["cancelled"]) == (0, False)
    missing = shell.run("move", "--from", f"sqlite:///{shell.directory}/none.db", "--to", target, "--yes")
    assert missing.code == 5
    assert not (shell.directory / "none.db").exists()


def test_a_terminal_shows_how_far_it_is(shell: Shell, target: str, job_id: int, ready_url: str) -> None:
    ended = shell.at_terminal("move", "--from", ready_url, "--to", target, types="y\n")
    assert ended.code == 0, ended.out
    assert "copy job" in ended.out
    assert "has moved to" in ended.out
