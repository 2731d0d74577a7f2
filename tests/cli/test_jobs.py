"""`detent jobs`: list, get, events, cancel, retry, why, wait."""

from __future__ import annotations

import json
import signal

import msgspec
import pytest

from detent.lifecycle.library import JOB
from detent.model.records import Finish, JobRow, NewEvent
from tests.cli.shell import NASTY, SECONDS_MAX, Shell, World


def test_list_shows_each_job_on_a_line(shell: Shell, world: World) -> None:
    """U2: a table for people, the newest first, with a heading."""
    first, second = world.succeeded(), world.pending(task="other", queue="mail")
    ended = shell.run("jobs", "list")
    assert ended.code == 0
    head, *rows = ended.rows
    assert head[:5] == ["ID", "STATE", "TASK", "QUEUE", "ATTEMPTS"]
    assert [row[:5] for row in rows] == [
        [str(second), "pending", "other", "mail", "0/4"],
        [str(first), "succeeded", "do", "default", "1/4"],
    ]
    assert ended.err == ""


def test_list_in_json_has_every_field_with_ids_as_strings_and_times_in_utc(shell: Shell, world: World) -> None:
    """U2: stable keys, ids as strings, times ISO 8601, and no number rounded on the way."""
    job_id = world.pending()
    ended = shell.run("jobs", "list", "--json")
    (found,) = ended.json
    fields = [name for name in JobRow.__struct_fields__ if name != "nonce"]
    assert list(found) == [*fields, "key", "worker", "progress", "status", "parked_for"]
    assert found["id"] == str(job_id)
    assert found["payload"] == {"n": 12345678901234567890}
    assert found["created_at"].endswith("Z")
    assert shell.run("--json", "jobs", "list").out == ended.out


@pytest.mark.parametrize("option", ["state", "task", "queue", "tenant"])
def test_list_takes_filters(shell: Shell, world: World, option: str) -> None:
    wanted = world.succeeded(task="other", queue="mail", tenant="ana")
    world.pending()
    value = {"state": "succeeded", "task": "other", "queue": "mail", "tenant": "ana"}[option]
    assert [one["id"] for one in shell.run("jobs", "ls", f"--{option}", value, "--json").json] == [str(wanted)]


def test_list_continues_after_a_place(shell: Shell, world: World) -> None:
    first, second, third = (world.pending() for _ in range(3))
    ended = shell.run("jobs", "list", "--limit", 1)
    assert [row[0] for row in ended.rows[1:]] == [str(third)]
    place = ended.err.split("--after ")[1].strip()
    ended = shell.run("jobs", "list", "--after", place)
    assert ([row[0] for row in ended.rows[1:]], ended.err) == ([str(second), str(first)], "")
    refused = shell.run("jobs", "list", "--after", "yesterday")
    assert (refused.code, "1767225600000000-17" in refused.err) == (2, True)


def test_list_finds_a_job_by_any_filter(shell: Shell, world: World) -> None:
    """Its key, correlation id, metadata, error, worker and time; and the key is shown."""
    dead = world.dead(error="ValueError: no price")
    call = world.app.find_task("do").call(n=1)
    wanted = world.app.enqueue(call, key="order-17", correlation_id="c-1", metadata={"order": 17}).id
    world.pending()
    world.pending()

    def found(*options: str) -> list[str]:
        return [one["id"] for one in shell.run("jobs", "list", "--json", *options).json]

    assert found("--key", "order-17") == found("--correlation-id", "c-1") == [str(wanted)]
    assert found("--metadata", "order=17", "--since", "1h") == [str(wanted)]
    assert found("--metadata", "order=18") == found("--until", "1h") == found("--run", "99") == []
    worker = world.app.jobs.get(dead).executions()[0].worker
    assert found("--error", "no price") == found("--worker", worker) == [str(dead)]
    assert len(found("--since", "2026-01-01")) == 4
    assert "order-17" in shell.run("jobs", "list").out
    assert "order-17" in shell.run("jobs", "get", wanted).out
    assert shell.run("jobs", "list", "--since", "later").code == shell.run("jobs", "list", "--metadata", "x").code == 2


def test_an_empty_list_is_a_note_on_stderr(shell: Shell, world: World) -> None:
    """The note names the database, since it may be another one than the user meant."""
    ended = shell.run("jobs", "list")
    assert (ended.code, ended.out, ended.err) == (0, "", f"no jobs to show in {world.app.store.name}\n")
    assert shell.run("jobs", "list", "--json").json == []


def test_get_shows_fields_attempts_and_transitions(shell: Shell, world: World) -> None:
    job_id = world.dead(error="Traceback\n  deep down\nValueError: no such thing")
    said = shell.run("jobs", "get", job_id).out
    assert "quarantined" in said
    assert "  deep down" in said
    assert "ValueError: no such thing" in said
    assert "claim" in said
    found = shell.run("jobs", "get", job_id, "--json").json
    assert found["state"] == "quarantined"
    assert [one["outcome"] for one in found["executions"]] == ["error"]
    assert {one["to_state"] for one in found["transitions"]} >= {"pending", "running", "failed", "quarantined"}


def test_events_are_printed_in_order(shell: Shell, world: World) -> None:
    """E6: on the command line."""
    job_id = world.pending()
    world.says(job_id, "first", '{"a":1}')
    world.says(job_id, "second")
    lines = shell.run("jobs", "events", job_id).out.splitlines()
    assert [line.split("  ", 1)[1] for line in lines] == ['info      first  {"a":1}', "info      second"]
    assert [one["message"] for one in shell.run("jobs", "events", job_id, "--json").json] == ["first", "second"]


def test_events_are_followed_until_the_job_has_ended(shell: Shell, world: World) -> None:
    """E6: each event is printed when it is written, as one JSON object; the command ends with the job."""
    job_id = world.running()
    world.says(job_id, "first")
    process = shell.start("jobs", "events", job_id, "--follow", "--json")
    assert process.stdout is not None
    assert json.loads(process.stdout.readline())["message"] == "first"
    world.says(job_id, "second")
    assert json.loads(process.stdout.readline())["message"] == "second"
    world.app.store.job_finish([Finish(job_id, 1)], "w1")
    out, err = process.communicate(timeout=SECONDS_MAX)
    assert (process.returncode, out, err) == (0, "", "")


def test_following_is_interrupted_quietly(shell: Shell, world: World) -> None:
    """U2: Ctrl-C gives 130 and no traceback."""
    job_id = world.pending()
    world.says(job_id, "first")
    process = shell.start("jobs", "events", job_id, "-f")
    assert process.stdout is not None
    assert "first" in process.stdout.readline()
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=SECONDS_MAX)
    assert process.returncode == 130
    assert err.strip() == ""


def test_cancel_prints_the_outcome_for_each_job(shell: Shell, world: World) -> None:
    done, running, pending = world.succeeded(), world.running(), world.pending()
    ended = shell.run("jobs", "cancel", pending, done, running, 999_999, "--reason", "enough", "--actor", "ana")
    assert ended.code == 4
    assert ended.out.splitlines() == [
        f"job {pending}: cancelled",
        f"job {running}: cancel requested; it is still running",
    ]
    refused, missing = ended.err.splitlines()
    assert f"job {done} is committed" in refused
    assert "there is no job 999999" in missing
    assert world.app.jobs.get(running).row.cancel_requested_by == "ana"
    assert world.app.jobs.get(pending).row.cancel_reason in (None, "enough")
    last = world.app.jobs.get(pending).history()[-1]
    assert (last.actor, last.reason) == ("ana", "enough")


def test_nothing_is_done_if_one_id_is_invalid(shell: Shell, world: World) -> None:
    pending = world.pending()
    ended = shell.run("jobs", "cancel", pending, "abc")
    assert (ended.code, ended.out) == (2, "")
    assert world.state(pending) == "pending"


@pytest.mark.parametrize("option", ["--actor", "--database"])
def test_an_empty_name_is_refused_and_not_replaced(sqlite_shell: Shell, option: str) -> None:
    ended = sqlite_shell.run("jobs", "cancel", 1, option, "")
    assert ended.code == 2
    assert option.strip("-") in ended.err


def test_many_ids_at_a_terminal_show_a_progress_bar(sqlite_shell: Shell) -> None:
    world = World(sqlite_shell.environment["DETENT_DATABASE_URL"])
    ids = [world.pending() for _ in range(100)]
    world.app.close()
    ended = sqlite_shell.at_terminal("jobs", "cancel", *ids)
    assert ended.code == 0
    assert "100%" in ended.out
    assert ended.out.count(": cancelled") == 100


def test_cancel_in_json_has_an_entry_for_each(shell: Shell, world: World) -> None:
    pending = world.pending()
    ended = shell.run("jobs", "cancel", 999_999, pending, "--json")
    assert ended.code == 3
    missing, stopped = ended.json
    assert stopped == {"id": str(pending), "state": "cancelled", "error": None}
    assert missing["id"] == "999999"
    assert missing["state"] is None
    assert "no job" in missing["error"]


def test_retry_refuses_jobs_that_succeeded(shell: Shell, world: World) -> None:
    dead = world.dead()
    assert shell.run("jobs", "retry", dead).out == f"job {dead}: pending\n"
    world.app.jobs.get(dead).cancel(actor="t")
    done = world.succeeded()
    ended = shell.run("jobs", "retry", done)
    assert ended.code == 4
    assert ended.err == f"detent: job {done} cannot go from succeeded to pending; allowed from succeeded: " + (
        "nothing, it is final\n"
    )


def test_why_is_one_sentence(shell: Shell, world: World) -> None:
    """J13: on the command line."""
    job_id = world.pending()
    assert shell.run("jobs", "why", job_id).out == f"{world.app.jobs.get(job_id).why()}\n"
    found = shell.run("jobs", "why", job_id, "--json").json
    assert found == {"id": str(job_id), "state": "pending", "why": world.app.jobs.get(job_id).why()}


def test_wait_tells_the_three_ends_apart(shell: Shell, world: World) -> None:
    """U2: 0 succeeded, 1 ended otherwise, 124 timed out."""
    done, dead, pending = world.succeeded(), world.dead(), world.pending()
    ended = shell.run("jobs", "wait", done)
    assert (ended.code, ended.out) == (0, f'job {done} succeeded: {{"told":"well"}}\n')
    ended = shell.run("jobs", "wait", dead, "--timeout", "5s")
    assert ended.code == 1
    assert ended.out.startswith(f"job {dead} is quarantined:\n")
    ended = shell.run("jobs", "wait", pending, "--timeout", "10ms")
    assert (ended.code, ended.out) == (124, "")
    assert ended.err.startswith(f"detent: job {pending} is still pending after")
    assert shell.run("jobs", "wait", done, "--json").json["result"] == {"told": "well"}


@pytest.mark.parametrize("verb", ["get", "events", "cancel", "retry", "why", "wait"])
def test_an_unknown_id_is_code_3(shell: Shell, verb: str) -> None:
    """U2: one line that says what was not found."""
    ended = shell.run("jobs", verb, 999_999)
    assert (ended.code, ended.out) == (3, "")
    assert ended.err == "detent: there is no job 999999 in this database (it may have been pruned)\n"


@pytest.mark.parametrize(
    ("verb", "given"),
    [("get", "abc"), ("events", "1.5"), ("cancel", "9" * 30), ("retry", ""), ("why", "\u0661"), ("wait", "-0x1")],
)
def test_an_invalid_id_is_code_2(sqlite_shell: Shell, verb: str, given: str) -> None:
    ended = sqlite_shell.run("jobs", verb, "--", given)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("detent: job id: found ")
    assert len(ended.err.splitlines()) == 1


def test_stored_text_cannot_move_the_cursor(shell: Shell, world: World) -> None:
    """Text that a job has stored is escaped in every form of output."""
    job_id = world.dead(error=NASTY)
    world.says(job_id, NASTY)
    for command in ("get", "events", "wait", "why"):
        for form in ((), ("--json",)):
            said = shell.run("jobs", command, job_id, *form).out
            assert not set("\x1b\r\u202e") & set(said), (command, form)
            assert "u202e" in said
    assert shell.run("jobs", "events", job_id, "--json").json[0]["message"] == NASTY


def test_list_names_the_allowed_states(sqlite_shell: Shell) -> None:
    ended = sqlite_shell.run("jobs", "list", "--state", "sleeping")
    assert ended.code == 2
    assert all(state in ended.err for state in JOB.states)


def test_a_filter_counts_first_and_then_acts_on_record(shell: Shell, world: World) -> None:
    """J14: first the count, then a tracked operation; nothing is done without confirmation."""
    world.succeeded(queue="mail")
    running = world.running(queue="mail")
    mail = [world.pending(queue="mail"), running]
    other = world.pending()
    assert shell.run("jobs", "cancel", "--queue", "mail", "--dry-run").out == "would affect 2\n"
    assert shell.run("jobs", "cancel", "--queue", "mail", "--dry-run", "--json").json == {"would_affect": 2}
    unasked = shell.run("jobs", "cancel", "--queue", "mail")
    assert (unasked.code, "needs --yes" in unasked.err) == (2, True)
    assert [world.app.jobs.get(one).state for one in mail] == ["pending", "running"]
    done = shell.run("jobs", "cancel", "--queue", "mail", "--yes", "--json", "--actor", "ana", "--reason", "wrong").json
    assert [(one["action"], one["state"], one["changed"], one["refused"]) for one in done] == [
        ("cancel", "done", 1, 0),
        ("cancel", "done", 1, 0),
    ]
    assert [(one["actor"], one["reason"], one["job_state"]) for one in done] == [
        ("ana", "wrong", "pending"),
        ("ana", "wrong", "running"),
    ]
    assert world.app.jobs.get(mail[0]).state == "cancelled"
    assert world.app.jobs.get(mail[1]).row.cancel_requested_by == "ana"
    assert world.app.jobs.get(other).state == "pending"


def test_retry_by_filter_leaves_cancelled_jobs_alone(shell: Shell, world: World) -> None:
    """J14"""
    dead = world.dead(queue="mail")
    gone = world.pending(queue="mail")
    world.app.jobs.get(gone).cancel(actor="ana")
    ended = shell.run("jobs", "retry", "--queue", "mail", "--yes")
    assert ended.code == 0
    assert ended.out.endswith("retry done, 1 changed\n")
    assert (world.app.jobs.get(dead).state, world.app.jobs.get(gone).state) == ("pending", "cancelled")
    assert shell.run("jobs", "retry", "--state", "cancelled", "--yes").code == 0
    assert world.app.jobs.get(gone).state == "pending"


def test_a_filter_without_matches_is_no_failure(shell: Shell) -> None:
    ended = shell.run("jobs", "retry", "--task", "nobody", "--json")
    assert (ended.code, ended.json, ended.err) == (0, [], "no jobs to retry\n")


@pytest.mark.parametrize(
    "arguments",
    [
        ("retry",),
        ("cancel",),
        ("retry", "1", "--queue", "mail"),
        ("retry", "1", "--dry-run"),
        ("cancel", "--state", "failed"),
    ],
)
def test_ids_or_filters_must_be_valid(sqlite_shell: Shell, arguments: tuple[str, ...]) -> None:
    ended = sqlite_shell.run("jobs", *arguments)
    assert (ended.code, ended.out) == (2, "")


def test_a_job_and_the_counts_at_a_past_time(shell: Shell, world: World) -> None:
    job_id = world.succeeded()
    moves = shell.run("jobs", "get", job_id, "--json").json["transitions"]
    claimed = next(move["at"] for move in moves if move["trigger"] == "claim")
    then = shell.run("jobs", "get", job_id, "--at", claimed, "--json").json
    assert (then["state"], [one["outcome"] for one in then["executions"]]) == ("running", [None])
    assert [one["trigger"] for one in then["transitions"]][-1] == "claim"
    assert "succeeded" not in shell.run("jobs", "get", job_id, "--at", claimed).out
    assert shell.run("jobs", "get", job_id, "--at", "1h").code == 3
    assert [(one["state"], one["jobs"]) for one in shell.run("jobs", "counts", "--json").json] == [("succeeded", 1)]
    counted = shell.run("jobs", "counts", "--at", claimed, "--json").json
    assert [(one["state"], one["jobs"]) for one in counted] == [("running", 1)]
    assert "no jobs at" in shell.run("jobs", "counts", "--at", "1h").err


def test_progress_is_shown(shell: Shell, world: World) -> None:
    job_id = world.running()
    world.app.store.job_start([(job_id, 1)])
    told = msgspec.json.encode({"done": 30, "total": 90}).decode()
    world.app.store.event_append([NewEvent(job_id=job_id, attempt=1, level="info", message="progress", payload=told)])
    assert "30 of 90" in shell.run("jobs", "list").out
    assert "30 of 90" in shell.run("jobs", "get", job_id).out
    assert shell.run("jobs", "list", "--json").json[0]["progress"] == {"done": 30, "total": 90}
    assert world.app.jobs.get(job_id).progress() == {"done": 30, "total": 90}
