"""`detent limits`."""

from __future__ import annotations

import pytest

from detent.model.limit_records import NewLimit
from tests.cli.shell import Shell, World


def test_a_queue_is_limited_and_the_limit_is_lifted(shell: Shell, world: World) -> None:
    """J12: for all workers together."""
    ended = shell.run("queues", "limit", "mail", "--concurrency", 5, "--rate", 2, "--per", "1m", "--burst", 4)
    assert (ended.code, ended.out) == (0, "limit queue:mail: 5 at once, 2 in 60 s, burst 4\n")
    head, row = shell.run("limits", "list").rows
    assert head[:4] == ["KEY", "STATE", "RUNNING", "AT"]
    assert row == ["queue:mail", "open", "0", "5", "2", "in", "60", "s", "4.0/4", "0", "mail"]
    (found,) = shell.run("limits", "list", "--json").json
    assert (found["key"], found["state"], found["concurrency_max"], found["rate"]) == ("queue:mail", "open", 5, 2.0)
    assert shell.run("queues", "limit", "mail", "--none").out == "limit queue:mail: no bounds\n"
    assert shell.run("limits", "list", "--json").json[0]["concurrency_max"] is None


def test_pause_and_resume_are_on_record_and_repeatable(shell: Shell, world: World) -> None:
    """J12, J13: by key, and `why` says who and why."""
    world.app.store.limit_put(NewLimit(key="shop", concurrency_max=3, tasks=("do",)))
    job = world.pending()
    ended = shell.run("limits", "pause", "shop", "--actor", "ana", "--reason", "their sale")
    assert (ended.code, ended.out) == (0, "limit shop: paused\n")
    assert shell.run("limits", "pause", "shop").out == "limit shop: paused (unchanged)\n"
    assert shell.run("jobs", "why", job).out == "its limit 'shop' is paused by ana: their sale\n"
    assert shell.run("limits", "list", "--waiting").rows[1][:2] == ["shop", "paused"]
    assert shell.run("limits", "list").rows[1][-3:] == ["ana", "their", "sale"]
    (found,) = shell.run("limits", "list", "--json").json
    assert (found["paused_by"], found["reason"]) == ("ana", "their sale")
    assert shell.run("limits", "resume", "shop", "--json").json == {"limit": "shop", "state": "open", "changed": True}
    assert shell.run("limits", "resume", "shop").out == "limit shop: open (unchanged)\n"
    ended = shell.run("limits", "list", "--waiting")
    assert (ended.code, ended.out, ended.err) == (0, "", "no limit is reached\n")


def test_a_limit_that_no_code_declares_any_more_is_removed(shell: Shell, world: World) -> None:
    """J12: refused while jobs need it."""
    world.app.store.limit_put(NewLimit(key="shop", concurrency_max=3, tasks=("do",)))
    job = world.pending()
    ended = shell.run("limits", "remove", "shop")
    assert (ended.code, ended.out) == (4, "")
    assert ended.err.startswith("detent: limit 'shop' cannot be removed: 1 job waits or runs under it; remove it when")
    world.app.jobs.get(job).cancel(actor="ana")
    assert shell.run("limits", "remove", "shop", "--reason", "gone").out == "limit shop: removed\n"
    assert shell.run("limits", "list", "--json").json == []
    assert shell.run("limits", "remove", "shop").code == 3


def test_an_unknown_limit(shell: Shell) -> None:
    ended = shell.run("limits", "pause", "nobody")
    assert (ended.code, ended.out) == (3, "")
    assert "nobody" in ended.err


@pytest.mark.parametrize(
    "arguments",
    [
        ("mail",),
        ("mail", "--burst", "3"),
        ("mail", "--none", "--rate", "2"),
        ("mail", "--rate", "0"),
        ("mail", "--concurrency", "0"),
        ("mail", "--concurrency", "5", "--burst", "3"),
        ("", "--concurrency", "5"),
    ],
)
def test_invalid_bounds_are_refused(sqlite_shell: Shell, arguments: tuple[str, ...]) -> None:
    ended = sqlite_shell.run("queues", "limit", *arguments)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("detent: ")
    assert sqlite_shell.run("limits", "list", "--json").json == []
