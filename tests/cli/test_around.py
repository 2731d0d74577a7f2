"""`detent schedules`, `detent workers` and `detent operations`."""

from __future__ import annotations

import pytest

from detent.model.service_records import WorkerSeen
from tests.cli.shell import APP, NASTY, Shell, World


def nightly(world: World, name: str = "nightly") -> None:
    """A schedule whose next tick is far away."""
    world.app.schedules.set(name, "0 0 29 2 *", world.app.find_task("do").call(n=1))


def test_schedules_are_listed_paused_resumed_and_removed(shell: Shell, world: World) -> None:
    """J11: pause, with actor and reason on record."""
    nightly(world)
    head, row = shell.run("schedules", "list").rows
    assert head[:4] == ["NAME", "STATE", "CRON", "ZONE"]
    assert row[:2] == ["nightly", "open"]
    ended = shell.run("schedules", "pause", "nightly", "--actor", "ana", "--reason", "quiet")
    assert (ended.code, ended.out) == (0, "schedule nightly: paused\n")
    assert shell.run("schedules", "pause", "nightly").out == "schedule nightly: paused (it was already)\n"
    (found,) = shell.run("schedules", "list", "--json").json
    assert (found["paused_by"], found["reason"], found["payload"]) == ("ana", "quiet", {"n": 1})
    resumed = shell.run("schedules", "resume", "nightly", "--json").json
    assert resumed == {"schedule": "nightly", "state": "active", "changed": True}
    assert shell.run("schedules", "next", "nightly", "--count", 2).out.count("-02-29 00:00:00Z\n") == 2
    assert len(shell.run("schedules", "next", "nightly", "--json").json) == 5
    assert shell.run("schedules", "remove", "nightly").out == "schedule nightly: removed\n"
    assert shell.run("schedules", "list").err == "no schedules\n"


@pytest.mark.parametrize("verb", ["pause", "resume", "remove", "next"])
def test_a_schedule_that_is_not_there(sqlite_shell: Shell, verb: str) -> None:
    ended = sqlite_shell.run("schedules", verb, "nobody")
    assert (ended.code, ended.out) == (3, "")
    assert "there is no schedule nobody" in ended.err


def test_workers_show_what_they_hold(shell: Shell, world: World) -> None:
    """W3"""
    assert shell.run("workers", "list").err == "no workers\n"
    world.app.store.worker_seen(
        WorkerSeen(id=7, name=NASTY, host="h", pid=12, queues=("mail",), tasks=("do",), slots=16, running=3)
    )
    ended = shell.run("workers", "list", "--within", "1h")
    assert "\x1b" not in ended.out
    assert " 3 " in ended.out
    (found,) = shell.run("workers", "list", "--within", "1h", "--json").json
    assert (found["id"], found["running"], found["queues"], found["tasks"]) == ("7", 3, ["mail"], ["do"])


def test_an_operation_counts_first_then_does_it(shell: Shell, world: World) -> None:
    """J14: would affect N, then tracked, on record."""
    jobs = [world.pending(queue="mail") for _ in range(3)]
    start = ("operations", "start", "move", "--queue", "mail", "--to-queue", "bulk")
    assert shell.run(*start, "--dry-run").out == "would affect 3\n"
    refused = shell.run(*start)
    assert (refused.code, refused.out) == (2, "")
    ended = shell.run(*start, "--yes", "--actor", "ana", "--reason", "too many")
    assert ended.code == 0
    assert ended.out.endswith(": move done, 3 changed\n")
    assert {world.app.jobs.get(one).row.queue for one in jobs} == {"bulk"}
    (found,) = shell.run("operations", "list", "--json").json
    assert (found["action"], found["state"], found["changed"], found["actor"]) == ("move", "done", 3, "ana")
    assert [row[1:3] for row in shell.run("operations", "list").rows] == [["ACTION", "STATE"], ["move", "done"]]


def test_an_operation_counts_what_it_can_be_done_to(shell: Shell, world: World) -> None:
    """J14: it counted whatever fitted the filter, also what had succeeded long ago."""
    world.dead(queue="mail")
    world.pending(queue="mail")
    for action, many in (("cancel", 1), ("retry", 1), ("discard", 1)):
        start = ("operations", "start", action, "--queue", "mail")
        assert shell.run(*start, "--dry-run", "--json").json == {"would_affect": many}
    assert shell.run("operations", "start", "cancel", "--state", "quarantined", "--dry-run").out == "would affect 0\n"


def test_an_operation_is_stopped(shell: Shell, world: World) -> None:
    """J14: cancellable."""
    job = world.pending()
    operation = world.app.jobs.where().cancel(actor="ana")
    ended = shell.run("operations", "cancel", operation.id, "--reason", "wrong filter")
    assert (ended.code, ended.out) == (0, f"operation {operation.id}: cancel cancelled, 0 changed\n")
    assert world.state(job) == "pending"
    assert shell.run("operations", "cancel", 4711).code == 3


@pytest.mark.parametrize(
    "arguments",
    [
        ("retry",),
        ("retry", "--all", "--task", "x"),
        ("move", "--all"),
        ("retry", "--all", "--to-queue", "x"),
        ("destroy", "--all"),
    ],
)
def test_what_is_meant_must_be_clear(sqlite_shell: Shell, arguments: tuple[str, ...]) -> None:
    assert sqlite_shell.run("operations", "start", *arguments).code == 2


def test_silent_jobs_are_listed_and_left_to_a_person_unless_a_queue_says_otherwise(shell: Shell, world: World) -> None:
    """R1: automatically, or on approval, per queue."""
    assert shell.run("jobs", "silent").err == "no silent jobs\n"
    job = world.running()
    ended = shell.run("jobs", "silent", "--stale-after", "1ms")
    assert [row[:2] for row in ended.rows] == [["ID", "KIND"], [str(job), "stale"]]
    (found,) = shell.run("jobs", "silent", "--stale-after", "1ms", "--json").json
    assert (found["job_id"], found["kind"], found["worker"]) == (str(job), "stale", "w1")
    assert shell.run("queues", "recoveries").err.startswith("none: ")
    said = shell.run(
        "queues", "recovery", "mail", "--automatic", "--stalled-after", "1h", "--actor", "ana", "--reason", "it hangs"
    )
    assert (said.code, said.out) == (0, "queue mail: automatic\n")
    (row,) = shell.run("queues", "recoveries", "--json").json
    assert (row["queue"], row["stale_after"], row["stalled_after"], row["changed_by"]) == ("mail", 300.0, 3600.0, "ana")
    assert shell.run("queues", "recovery", "mail", "--by-approval", "--json").json == {
        "queue": "mail",
        "recovery": "approval",
        "changed": True,
    }


def declared(cron: str | None) -> str:
    """The application with a schedule of that cron, or without one."""
    app = APP.replace('app.lifecycles.attach(ORDER, table="orders")\n', "")
    if cron is None:
        return app
    return f'{app}\n\napp.schedule("{cron}", add.call(a=1, b=2), name="nightly")\n'


def crons(shell: Shell) -> dict[str, str]:
    return {row["name"]: row["cron"] for row in shell.run("schedules", "list", "--json").json}


def test_a_command_that_reads_never_changes_a_schedule(shell: Shell, world: World) -> None:
    """Somebody edits the code and looks at production: the schedule there stays. A worker or `migrate` writes it."""
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
    assert (ended.code, "declarations written: schedule nightly" in ended.err) == (0, True)
    assert crons(shell) == {"nightly": "0 3 * * *"}


def test_a_schedule_that_left_the_code_is_reported_and_pruned(shell: Shell) -> None:
    source = shell.directory / "shop.py"
    source.write_text(declared("0 2 * * *"))
    assert shell.run("migrate", "--app", "shop:app").code == 0
    source.write_text(declared(None))
    told = "the code no longer declares"
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
