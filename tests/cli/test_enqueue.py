"""`detent enqueue` and `detent worker`: enqueue and run a job from the command line alone."""

from __future__ import annotations

import json
import signal

import pytest

from tests.cli.shell import SECONDS_MAX, Shell

APP = ("--app", "shop:app")


def test_enqueue_prints_the_id(shell: Shell) -> None:
    ended = shell.run("enqueue", "add", '{"a": 1, "b": 2}', *APP, "--queue", "sums", "--priority", 3, "--tenant", "ana")
    assert (ended.code, ended.err) == (0, "")
    found = shell.run("jobs", "get", ended.out.strip(), "--json").json
    assert (found["task"], found["payload"], found["state"]) == ("add", {"a": 1, "b": 2}, "pending")
    assert (found["queue"], found["priority"], found["tenant"]) == ("sums", 3, "ana")


def test_a_key_finds_the_first_job(shell: Shell) -> None:
    """J3: on the command line; another payload under the same key is code 4."""
    first = shell.run("enqueue", "add", '{"a": 1, "b": 2}', *APP, "--key", "k", "--json").json
    again = shell.run("enqueue", "add", '{"a": 1, "b": 2}', *APP, "--key", "k")
    assert (first["created"], again.out) == (True, f"{first['id']}\n")
    assert "nothing was enqueued" in again.err
    other = shell.run("enqueue", "add", '{"a": 1, "b": 3}', *APP, "--key", "k")
    assert (other.code, other.out) == (4, "")
    assert f"belongs to job {first['id']}" in other.err


def test_arguments_can_come_from_stdin(sqlite_shell: Shell) -> None:
    ended = sqlite_shell.run("enqueue", "add", "-", *APP, stdin='{"a": 1, "b": 2}')
    assert ended.code == 0
    assert sqlite_shell.run("jobs", "get", ended.out.strip(), "--json").json["payload"] == {"a": 1, "b": 2}


def test_times_have_a_zone(sqlite_shell: Shell) -> None:
    ended = sqlite_shell.run("enqueue", "fail", *APP, "--due-at", "2999-01-31T18:00:00+01:00", "--json")
    found = sqlite_shell.run("jobs", "get", ended.json["id"], "--json").json
    assert found["due_at"] == "2999-01-31T17:00:00Z"


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("add", '{"a": 1}', *APP), 2, "`b`"),
        (("add", '{"a": 1, "b": "x"}', *APP), 2, "b"),
        (("add", '{"a": 1', *APP), 2, "add"),
        (("add", "[1, 2]", *APP), 2, "add"),
        (("add", '{"a": NaN, "b": 1}', *APP), 2, "add"),
        (("nothing", *APP), 3, "no task 'nothing' is declared here; declared: add, fail"),
        (("add",), 2, "an application is missing: add --app shop:app, or set DETENT_APP=shop:app"),
        (("add", "--app", "shop"), 2, "module:name"),
        (("add", "--app", "nowhere:app"), 2, "no module 'nowhere'"),
        (("add", "--app", "shop:nothing"), 2, "a Detent application"),
        (("add", "--app", "broken:app"), 1, "broken:app cannot be imported: ZeroDivisionError: division by zero"),
        (("add", "--app", "ends:app"), 1, "ends:app cannot be imported: SystemExit"),
        (("add", *APP, "--due-at", "tomorrow"), 2, "no ISO 8601 time"),
        (("add", *APP, "--due-at", "2026-01-31T18:00:00"), 2, "has no time zone"),
        (("add", *APP, "--key-ttl", "soon"), 2, "such as 30s"),
        (("add", *APP, "--priority", "high"), 2, "--priority"),
        (("add", '{"a": 1, "b": 2}', *APP, "--key", ""), 2, "key"),
    ],
)
def test_bad_input_is_one_line(sqlite_shell: Shell, arguments: tuple[str, ...], code: int, says: str) -> None:
    """U2: it says what was refused and what is allowed."""
    (sqlite_shell.directory / "broken.py").write_text("1 / 0")
    (sqlite_shell.directory / "ends.py").write_text("raise SystemExit(0)")
    ended = sqlite_shell.run("enqueue", *arguments)
    assert (ended.code, ended.out) == (code, "")
    assert says in ended.err
    assert ended.err.startswith("detent: ")
    assert len(ended.err.splitlines()) == 1


def test_an_application_keeps_its_own_database(sqlite_shell: Shell) -> None:
    (sqlite_shell.directory / "own.py").write_text("from detent import Detent\napp = Detent('sqlite:///own.db')\n")
    ended = sqlite_shell.run("jobs", "list", "--app", "own:app", "--database", "sqlite:///other.db")
    assert ended.code == 2
    assert "own:app names its own database" in ended.err
    assert not (sqlite_shell.directory / "other.db").exists()


def test_a_worker_drains_the_queue(shell: Shell) -> None:
    """W1: one command starts a worker; with --drain it ends when nothing is left."""
    good = shell.run("enqueue", "add", '{"a": 1, "b": 2}', *APP).out.strip()
    bad = shell.run("enqueue", "fail", *APP).out.strip()
    ended = shell.run("worker", "shop:app", "--drain", "--name", "w7", "--log-format", "json")
    assert (ended.code, ended.out) == (0, "")
    assert "Worker w7" in json.loads(ended.err.splitlines()[0])["message"]
    assert shell.run("jobs", "wait", good).out == f"job {good} succeeded: 3\n"
    dead = shell.run("jobs", "wait", bad)
    assert dead.code == 1
    assert "RuntimeError: as it must" in dead.out
    assert [one["message"] for one in shell.run("jobs", "events", good, "--json").json] == ["adding"]


def test_a_worker_works_on_the_database_it_was_given(lone_shell: Shell) -> None:
    """Its children too, which read the environment."""
    there = ("--database", "sqlite:///there.db")
    job_id = lone_shell.run("enqueue", "add", '{"a": 1, "b": 2}', *APP, *there).out.strip()
    assert lone_shell.run("worker", "shop:app", "--drain", *there).code == 0
    assert lone_shell.run("jobs", "wait", job_id, *there).code == 0
    assert not (lone_shell.directory / "detent.db").exists()


def test_a_worker_stops_on_sigterm(sqlite_shell: Shell) -> None:
    process = sqlite_shell.start("worker", "shop:app")
    assert process.stderr is not None
    assert "Worker" in process.stderr.readline()
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=SECONDS_MAX)
    assert process.returncode == 0


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--queues", "a:x"), "queues"),
        (("--slots", "0"), "slots"),
        (("--processes", "-1"), "processes"),
        (("--lease", "1ms"), "lease"),
        (("--grace", "for ever"), "--grace"),
        (("--max-jobs", "-1"), "max_jobs"),
    ],
)
def test_a_worker_refuses_invalid_options(lone_shell: Shell, arguments: tuple[str, str], says: str) -> None:
    ended = lone_shell.run("worker", "shop:app", *arguments)
    assert ended.code == 2
    assert says in ended.err
    assert not list(lone_shell.directory.glob("*.db"))
