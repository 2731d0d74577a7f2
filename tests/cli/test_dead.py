"""`detent dead`, and the verbs of `detent jobs` for dead jobs: retry, discard, settle and replace."""

from __future__ import annotations

import pytest

from detent.errors import InvalidInput
from tests.cli.shell import Shell, World

DEAD = ("--state", "quarantined")


def test_list_shows_the_error_of_each(shell: Shell, world: World) -> None:
    """J10: dead jobs on the command line."""
    dead = world.dead()
    world.pending()
    ended = shell.run("dead", "list")
    assert [row[0] for row in ended.rows] == ["ID", str(dead)]
    assert ended.out.rstrip().endswith("ValueError: no such thing")
    assert [one["id"] for one in shell.run("dead", "list", "--json").json] == [str(dead)]


def test_list_names_the_exception_if_its_message_has_many_lines(shell: Shell, world: World) -> None:
    """J10: the last line alone was useless: a caret, a hint, the end of a command's output."""
    frames = 'Traceback (most recent call last):\n  File "shop.py", line 3, in do\n    ask()\n    ^^^^^\n'
    world.dead(error=frames + 'UndefinedTable: relation "nope" does not exist\nLINE 1: SELECT\n               ^')
    assert shell.run("dead", "list").out.rstrip().endswith('UndefinedTable: relation "nope" does not exist')
    world.dead(error=f"{frames}KeyError: 7\n\nDuring handling of it:\n\n{frames}CommandFailed: exit code 3\n  err")
    assert shell.run("dead", "list").out.splitlines()[1].endswith("CommandFailed: exit code 3")
    told = world.dead(error="its process ended with exit code 3\nwhile it ran")
    assert shell.run("jobs", "why", told).out.endswith(": its process ended with exit code 3\n")


def test_a_long_error_keeps_the_list_readable(shell: Shell, world: World) -> None:
    """J10: an error of megabytes filled the screen, and was the answer to `why`; `jobs get` has all of it."""
    dead = world.dead(error=f"ValueError: {'x' * 5000} at last")
    for said in (shell.run("dead", "list").out, shell.run("jobs", "why", dead).out):
        assert "ValueError: xxx" in said
        assert said.rstrip().endswith("x…")
        assert max(map(len, said.splitlines())) < 500
    assert "at last" in shell.run("jobs", "get", dead).out


def test_report_summarises_why_jobs_died(shell: Shell, world: World) -> None:
    """J10: by task, queue, reason and kind of error, with counts, times and an example."""
    first, last = world.dead(), world.dead()
    world.dead(task="other", queue="slow", error="RuntimeError: boom")
    head, most, _ = shell.run("dead", "report").rows
    assert head[:5] == ["JOBS", "TASK", "QUEUE", "REASON", "ERROR"]
    assert (most[:5], most[-1]) == (["2", "do", "default", "fatal", "ValueError"], str(last))
    (found,) = shell.run("dead", "report", "--queue", "slow", "--json").json
    assert {name: found[name] for name in ("jobs", "kind", "attempts", "task")} == {
        "jobs": 1,
        "kind": "RuntimeError",
        "attempts": 1,
        "task": "other",
    }
    ended = shell.run("dead", "report", "--limit", 1)
    assert (len(ended.rows), ended.err) == (2, "There may be more: --limit\n")
    (group,) = world.app.dead.report(task="do")
    assert (group.jobs, group.oldest_at) == (2, world.app.jobs.get(first).finished_at)
    with pytest.raises(InvalidInput):
        world.app.dead.report(limit=0)


@pytest.mark.parametrize(("verb", "state"), [("retry", "pending"), ("discard", "cancelled")])
def test_ids_need_no_confirmation(shell: Shell, world: World, verb: str, state: str) -> None:
    """J10: retried or discarded, with actor and reason on record."""
    chosen, other = world.dead(), world.dead()
    ended = shell.run("jobs", verb, chosen, "--actor", "ana", "--reason", "looked at it")
    assert (ended.code, ended.out) == (0, f"job {chosen}: {state}\n")
    assert [world.state(one) for one in (chosen, other)] == [state, "quarantined"]
    last = world.app.jobs.get(chosen).history()[-1]
    assert (last.trigger, last.actor, last.reason) == (verb, "ana", "looked at it")


def test_a_filter_counts_first_and_changes_nothing_on_a_dry_run(shell: Shell, world: World) -> None:
    dead = [world.dead(task="other"), world.dead(task="other"), world.dead()]
    assert shell.run("jobs", "retry", *DEAD, "--dry-run").out == "would affect 3\n"
    assert shell.run("jobs", "discard", "--task", "other", "--dry-run", "--json").json == {"would_affect": 2}
    assert {world.state(one) for one in dead} == {"quarantined"}


def test_a_filter_acts_on_matching_jobs_with_yes(shell: Shell, world: World) -> None:
    first, second, spared = world.dead(queue="a"), world.dead(queue="a"), world.dead(queue="b")
    ended = shell.run("jobs", "discard", *DEAD, "--queue", "a", "--yes", "--json")
    assert ended.code == 0
    assert [(one["action"], one["state"], one["changed"]) for one in ended.json] == [("discard", "done", 2)]
    assert {world.state(first), world.state(second)} == {"cancelled"}
    assert world.state(spared) == "quarantined"


def test_without_a_terminal_a_filter_needs_yes(shell: Shell, world: World) -> None:
    """U2: never a prompt if there is no terminal; nothing is done."""
    dead = world.dead()
    ended = shell.run("jobs", "retry", *DEAD, stdin="y\n")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err == "detent: retry 1 job: needs --yes, since there is no terminal to ask at; nothing changed\n"
    assert world.state(dead) == "quarantined"


@pytest.mark.parametrize(("types", "code", "state"), [("y\n", 0, "pending"), ("n\n", 130, "quarantined")])
def test_at_a_terminal_a_filter_asks(shell: Shell, world: World, types: str, code: int, state: str) -> None:
    dead = world.dead()
    ended = shell.at_terminal("jobs", "retry", *DEAD, types=types)
    assert "retry 1 job? [y/N]" in ended.out
    assert ended.code == code
    assert world.state(dead) == state


def test_no_matching_jobs_are_no_failure(sqlite_shell: Shell) -> None:
    ended = sqlite_shell.run("jobs", "retry", *DEAD)
    assert (ended.code, ended.out, ended.err) == (0, "", "no jobs to retry\n")
    assert sqlite_shell.run("jobs", "retry", *DEAD, "--json").json == []


@pytest.mark.parametrize("arguments", [(), ("1", *DEAD), ("1", "--task", "x")])
def test_either_ids_or_a_filter_are_required(sqlite_shell: Shell, arguments: tuple[str, ...]) -> None:
    ended = sqlite_shell.run("jobs", "discard", *arguments)
    assert ended.code == 2
    assert "either job ids or a filter" in ended.err


def test_an_unknown_effect_is_settled(shell: Shell, world: World) -> None:
    """C5: by a person, with a reason, on record."""
    happened, not_yet, known = world.unknown(), world.unknown(), world.dead()
    told = ("--actor", "ana", "--reason", "asked the bank")
    assert shell.run("jobs", "settle", happened, "--done", "--result", '"paid"', *told).code == 0
    assert shell.run("jobs", "settle", not_yet, "--not-done", *told).code == 0
    assert (world.state(happened), world.state(not_yet)) == ("succeeded", "pending")
    job = world.app.jobs.get(happened)
    assert (job.row.result, world.app.jobs.get(happened).history()[-1].actor) == ('"paid"', "ana")
    refused = shell.run("jobs", "settle", known, "--done", *told)
    assert (refused.code, world.state(known)) == (4, "quarantined")
    assert "not as unknown" in refused.err


def test_settle_requires_an_outcome_and_a_reason(shell: Shell, world: World) -> None:
    job = world.unknown()
    for wrong, says in (
        (("--reason", "seen"), "--done or --not-done"),
        (("--done",), "--reason"),
        (("--not-done", "--result", "7", "--reason", "seen"), "--result goes with --done"),
        (("--done", "--result", "{", "--reason", "seen"), "--result"),
    ):
        ended = shell.run("jobs", "settle", job, *wrong)
        assert (ended.code, says in ended.err) == (2, True), ended.err
    assert world.state(job) == "quarantined"


def test_a_dead_job_is_replaced(shell: Shell, world: World) -> None:
    dead = world.dead()
    assert shell.run("jobs", "replace", dead, "[1]", "--reason", "a typo").code == 2
    replaced = shell.run("jobs", "replace", dead, '{"n": 8}', "--actor", "ana", "--reason", "a typo", "--json")
    assert (replaced.code, replaced.json["payload"], replaced.json["state"]) == (0, {"n": 8}, "pending")
    (line,) = shell.run("record", "search", "--actor", "ana", "--json").json
    assert line["reason"] == f"replaced by job {replaced.json['id']}: a typo"
