"""Bulk operations, `detent operations`, `detent workers` and silent jobs."""

from __future__ import annotations

import pytest

from detent.model.service_records import WorkerSeen
from tests.cli.shell import NASTY, Shell, World


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


def test_an_operation_counts_first_and_then_acts(shell: Shell, world: World) -> None:
    """J14: --dry-run counts; the operation is tracked and on record."""
    jobs = [world.pending(queue="mail") for _ in range(3)]
    start = ("jobs", "move", "--queue", "mail", "--to-queue", "bulk")
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


def test_an_operation_counts_only_jobs_that_it_can_change(shell: Shell, world: World) -> None:
    """J14: it counted every job that matched the filter, also jobs that had succeeded long ago."""
    world.dead(queue="mail")
    world.pending(queue="mail")
    for action, many in (("cancel", 1), ("retry", 1), ("discard", 1)):
        start = ("jobs", action, "--queue", "mail")
        assert shell.run(*start, "--dry-run", "--json").json == {"would_affect": many}
    assert shell.run("jobs", "cancel", "--state", "quarantined", "--dry-run").code == 2


def test_an_operation_is_cancelled(shell: Shell, world: World) -> None:
    """J14: jobs that it has not reached stay as they are."""
    job = world.pending()
    operation = world.app.jobs.where().cancel(actor="ana")
    ended = shell.run("operations", "cancel", operation.id, "--reason", "wrong filter")
    assert (ended.code, ended.out) == (0, f"operation {operation.id}: cancel cancelled, 0 changed\n")
    assert world.state(job) == "pending"
    assert shell.run("operations", "cancel", 4711).code == 3


@pytest.mark.parametrize(
    "arguments",
    [
        ("move",),
        ("move", "--to-queue", "x"),
        ("move", "--task", "x"),
        ("move", "--state", "running", "--to-queue", "x"),
        ("retry", "--task", "x", "--to-queue", "x"),
        ("destroy", "--task", "x"),
    ],
)
def test_a_bulk_command_needs_a_filter_and_an_allowed_state(sqlite_shell: Shell, arguments: tuple[str, ...]) -> None:
    assert sqlite_shell.run("jobs", *arguments).code == 2


def test_silent_jobs_are_listed_and_recovery_is_set_per_queue(shell: Shell, world: World) -> None:
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
        "state": "approval",
        "changed": True,
    }
