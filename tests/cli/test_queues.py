"""`detent queues` and `detent top`."""

from __future__ import annotations

import json
import signal

from detent.lifecycle.library import JOB
from tests.cli.shell import SECONDS_MAX, Shell, World


def test_list_counts_by_state(shell: Shell, world: World) -> None:
    world.succeeded(queue="mail")
    world.pending(queue="mail", tenant="ana")
    world.pending()
    ended = shell.run("queues", "list")
    head, first, second = ended.rows
    assert head == ["QUEUE", "CLAIMS", *map(str.upper, JOB.states), "PAUSED", "BY", "REASON"]
    assert first == ["default", "open", "1", "0", "0", "0", "0", "0"]
    assert second == ["mail", "open", "1", "0", "1", "0", "0", "0"]
    found = shell.run("queues", "list", "--json").json
    assert [(one["name"], one["paused"], one["jobs"]["pending"]) for one in found] == [
        ("default", False, 1),
        ("mail", False, 1),
    ]


def test_pause_and_resume_are_on_record_and_repeatable(shell: Shell, world: World) -> None:
    """J12: queues pause and resume."""
    world.pending(queue="mail")
    ended = shell.run("queues", "pause", "mail", "--actor", "ana", "--reason", "the provider is down")
    assert (ended.code, ended.out, ended.err) == (0, "queue mail: paused\n", "")
    assert "Queue mial has no jobs on record." in shell.run("queues", "pause", "mial").err
    shell.run("queues", "resume", "mial")
    assert shell.run("queues", "pause", "mail").out == "queue mail: paused (unchanged)\n"
    assert shell.run("queues", "list").out.rstrip().endswith("  ana        the provider is down")
    (found,) = shell.run("queues", "list", "--json").json
    assert (found["paused"], found["paused_by"], found["paused_reason"]) == (True, "ana", "the provider is down")
    resumed = shell.run("queues", "resume", "mail", "--json").json
    assert resumed == {"queue": "mail", "state": "open", "changed": True}
    assert shell.run("queues", "list", "--json").json[0]["paused"] is False


def test_a_paused_queue_is_listed_without_jobs(shell: Shell) -> None:
    """J12: a person who paused it must find it again."""
    shell.run("queues", "pause", "mail", "--actor", "ana")
    (found,) = shell.run("queues", "list", "--json").json
    assert (found["name"], found["paused"], found["paused_by"], set(found["jobs"].values())) == (
        "mail",
        True,
        "ana",
        {0},
    )
    shell.run("queues", "resume", "mail")
    assert shell.run("queues", "list", "--json").json == []


def test_without_queues_there_is_a_note(sqlite_shell: Shell) -> None:
    ended = sqlite_shell.run("queues", "list")
    assert (ended.code, ended.out) == (0, "")
    assert ended.err.startswith("no queues")


def test_a_queue_without_a_name_is_refused(sqlite_shell: Shell) -> None:
    ended = sqlite_shell.run("queues", "pause", "")
    assert ended.code == 2
    assert ended.err.startswith("detent: queue: found ")


def test_top_once_is_a_table(shell: Shell, world: World) -> None:
    world.pending()
    first, head, row = shell.run("top", "--once").rows
    assert first[1].endswith("Z")
    assert head == ["QUEUE", "CLAIMS", *map(str.upper, JOB.states), "DONE/S"]
    assert row == ["default", "open", "1", "0", "0", "0", "0", "0"]
    assert shell.run("top", "--once", "--json").json["queues"][0]["succeeded_per_second"] is None


def test_top_continues_until_interrupted(shell: Shell, world: World) -> None:
    world.succeeded()
    process = shell.start("top", "--json", "--interval", "10ms")
    assert process.stdout is not None
    first, second = (json.loads(process.stdout.readline())["queues"][0] for _ in range(2))
    assert first["succeeded_per_second"] is None
    assert second["succeeded_per_second"] == 0
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=SECONDS_MAX)
    assert process.returncode == 130
    assert err.strip() == ""


def test_top_at_a_terminal_is_drawn_in_place(sqlite_shell: Shell) -> None:
    world = World(sqlite_shell.environment["DETENT_DATABASE_URL"])
    world.pending(queue="[bold]mail")
    world.app.close()
    ended = sqlite_shell.at_terminal("top", "--interval", "10ms", until="Ctrl-C ends")
    assert ended.code == 130
    assert "QUEUE" in ended.out
    assert "[bold]mail" in ended.out
    assert "Traceback" not in ended.out


def test_top_refuses_an_interval_of_zero(sqlite_shell: Shell) -> None:
    ended = sqlite_shell.run("top", "--interval", "0s")
    assert ended.code == 2
    assert "--interval" in ended.err
