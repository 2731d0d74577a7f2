"""`detent schedules`."""

from __future__ import annotations

import pytest

from tests.cli.shell import APP, Shell, World


def nightly(world: World, name: str = "nightly") -> None:
    """Set a schedule whose next tick is far away."""
    world.app.schedules.set(name, "0 0 29 2 *", world.app.find_task("do").call(n=1))


def test_schedules_are_listed_paused_resumed_and_removed(shell: Shell, world: World) -> None:
    """J11: pause, with actor and reason on record."""
    nightly(world)
    head, row = shell.run("schedules", "list").rows
    assert head[:4] == ["NAME", "STATE", "CRON", "ZONE"]
    assert row[:2] == ["nightly", "active"]
    ended = shell.run("schedules", "pause", "nightly", "--actor", "ana", "--reason", "quiet")
    assert (ended.code, ended.out) == (0, "schedule nightly: paused\n")
    assert shell.run("schedules", "pause", "nightly").out == "schedule nightly: paused (unchanged)\n"
    (found,) = shell.run("schedules", "list", "--json").json
    assert (found["paused_by"], found["reason"], found["payload"]) == ("ana", "quiet", {"n": 1})
    resumed = shell.run("schedules", "resume", "nightly", "--json").json
    assert resumed == {"schedule": "nightly", "state": "active", "changed": True}
    assert shell.run("schedules", "next", "nightly", "--count", 2).out.count("-02-29 00:00:00Z\n") == 2
    assert len(shell.run("schedules", "next", "nightly", "--json").json) == 5
    assert shell.run("schedules", "remove", "nightly").out == "schedule nightly: removed\n"
    assert shell.run("schedules", "list").err == "no schedules\n"


@pytest.mark.parametrize("verb", ["pause", "resume", "remove", "next"])
def test_an_unknown_schedule(sqlite_shell: Shell, verb: str) -> None:
    ended = sqlite_shell.run("schedules", verb, "nobody")
    assert (ended.code, ended.out) == (3, "")
    assert "there is no schedule nobody" in ended.err


def test_a_schedule_is_run_now(shell: Shell, world: World) -> None:
    world.app.schedules.set("nightly", "0 3 * * *", world.app.find_task("do").call(n=1))
    ran = shell.run("schedules", "run-now", "nightly", "--actor", "ana", "--reason", "a customer waits", "--json")
    (job,) = shell.run("jobs", "list", "--metadata", "schedule=nightly", "--json").json
    assert (ran.json["job_id"], job["metadata"]) == (job["id"], {"schedule": "nightly", "run_by": "ana"})
    (line,) = shell.run("record", "search", "--actor", "ana", "--json").json
    assert (line["entity"], line["trigger"], line["reason"]) == ("schedule", "run_now", "a customer waits")
    assert shell.run("schedules", "run-now", "hourly").code == 3


def declared(cron: str | None) -> str:
    """Return the source of the application, with a schedule of that cron or without one."""
    app = APP.replace('app.lifecycles.attach(ORDER, table="orders")\n', "")
    if cron is None:
        return app
    return f'{app}\n\napp.schedule("{cron}", add.call(a=1, b=2), name="nightly")\n'


def crons(shell: Shell) -> dict[str, str]:
    return {row["name"]: row["cron"] for row in shell.run("schedules", "list", "--json").json}


def test_a_command_that_reads_never_changes_a_schedule(shell: Shell, world: World) -> None:
    """Reading production with edited code changes no schedule there. A worker or `migrate` writes it."""
    world.pending()
    source = shell.directory / "shop.py"
    source.write_text(declared("0 2 * * *"))
    assert shell.run("schedules", "list", "--app", "shop:app").err == "no schedules\n"
    assert shell.run("jobs", "list", "--app", "shop:app").code == 0
    assert crons(shell) == {}
    assert shell.run("migrate", "--app", "shop:app").code == 0
    assert crons(shell) == {"nightly": "0 2 * * *"}
    source.write_text(declared("0 3 * * *"))
    assert shell.run("doctor", "--app", "shop:app").code == 0
    assert crons(shell) == {"nightly": "0 2 * * *"}
    ended = shell.run("worker", "shop:app", "--drain")
    assert (ended.code, "Declarations written: schedule nightly" in ended.err) == (0, True)
    assert crons(shell) == {"nightly": "0 3 * * *"}


def test_a_schedule_that_left_the_code_is_reported_and_pruned(shell: Shell) -> None:
    source = shell.directory / "shop.py"
    source.write_text(declared("0 2 * * *"))
    assert shell.run("migrate", "--app", "shop:app").code == 0
    source.write_text(declared(None))
    told = "he code no longer declares"
    assert f"{told} schedules that still run: nightly" in shell.run("worker", "shop:app", "--drain").err
    assert f"{told}: nightly" in shell.run("doctor", "--app", "shop:app").out
    (row,) = shell.run("schedules", "list", "--app", "shop:app", "--json").json
    assert row["origin"] == "left the code"
    refused = shell.run("schedules", "prune", "--app", "shop:app")
    assert (refused.code, crons(shell)) == (2, {"nightly": "0 2 * * *"})
    assert shell.run("schedules", "prune", "--app", "shop:app", "--yes").out == "schedule nightly: removed\n"
    assert crons(shell) == {}
    assert "the code declares every schedule" in shell.run("schedules", "prune", "--app", "shop:app").err
    assert shell.run("schedules", "prune").code == 2
