"""`detent ops` from a shell: queue, claim, event, finish."""

from __future__ import annotations

import json
import subprocess
from contextlib import closing

import pytest

from detent.testing.stores import plain_connection, table
from tests.app.shop import until
from tests.cli.shell import NASTY, Shell, World


def test_a_run_from_a_shell(shell: Shell) -> None:
    """O1, O3, W5: the same verbs for SQLite and for shells without psql."""
    queued = shell.run(
        "ops", "queue", "shop", "staging", "--git-sha", "abc", "--git-ref", "it's $(x)", "--metadata", '{"by":1}'
    )
    run = queued.out.strip()
    assert (queued.code, run.startswith("run-")) == (0, True), queued.err
    told = dict(line.split("=", 1) for line in shell.run("ops", "claim", "worker-001").out.splitlines())
    assert told == {
        "run_id": run,
        "token": told["token"],
        "project_id": "shop",
        "env": "staging",
        "git_sha": "abc",
        "git_ref": "it's $(x)",
    }
    token = ("--token", told["token"])
    assert shell.run("ops", "event", run, "Starting", "--payload", '{"step":"build"}', *token).out == f"{run}/2\n"
    piped = shell.run("ops", "event", run, "-", *token, stdin="one\n\ntwo\none\n")
    assert (piped.code, piped.out) == (0, ""), piped.err
    ended = shell.run("ops", "finish", run, "success", "--metadata", '{"exit_code":0}', *token, "--json")
    assert (ended.json["state"], ended.json["metadata"]) == ("success", {"by": 1, "exit_code": 0})
    assert shell.run("ops", "finish", run, "success", *token).out == "success\n"
    other = shell.run("ops", "finish", run, "failed", *token)
    assert (other.code, "cannot go from success to failed" in other.err) == (4, True)
    lines = [json.loads(line) for line in shell.run("ops", "follow", run, "--json").out.splitlines()]
    assert [(line.get("message"), line.get("payload")) for line in lines[1:-1]] == [
        ("Starting", {"step": "build"}),
        ("one", {"line": 1}),
        ("", {"line": 2}),
        ("two", {"line": 3}),
        ("one", {"line": 4}),
    ]
    assert lines[-1] == {"run_id": run, "state": "success"}
    assert shell.run("ops", "follow", run).out.splitlines()[-1] == f"{run}: success"


def test_an_empty_queue_has_its_own_exit_code(sqlite_shell: Shell) -> None:
    shell = sqlite_shell
    none = shell.run("ops", "claim", "worker-001")
    assert (none.code, none.out, none.err) == (3, "", "no run is queued\n")
    assert shell.run("ops", "claim", "worker-001", "--json").json is None


def test_a_key_queues_once(sqlite_shell: Shell) -> None:
    """O3, J3"""
    shell = sqlite_shell
    first = shell.run("ops", "queue", "shop", "staging", "--git-sha", "abc", "--key", "deploy-abc", "--json").json
    again = shell.run("ops", "queue", "shop", "staging", "--git-sha", "abc", "--key", "deploy-abc")
    assert (first["created"], again.out, again.code) == (True, first["run_id"] + "\n", 0)
    assert "the key belongs to this run" in again.err
    assert shell.run("ops", "queue", "shop", "staging", "--git-sha", "abd", "--key", "deploy-abc").code == 4


def test_a_run_is_listed_shown_cancelled_and_followed(sqlite_shell: Shell) -> None:
    """J8: the actor is on record; exit code 1 if the run did not end with success."""
    shell = sqlite_shell
    run = shell.run("ops", "queue", "shop", "production", "--git-ref", NASTY).out.strip()
    shell.run("ops", "queue", "blog", "staging")
    listed = shell.run("ops", "list", "--project-id", "shop")
    assert [row[:4] for row in listed.rows[1:]] == [[run, "shop", "production", "queued"]]
    assert "\x1b" not in listed.out
    assert shell.run("ops", "follow", run, "--no-wait").code == 0
    assert shell.run("ops", "cancel", run, "--actor", "bob", "--reason", "enough").out == "cancelled\n"
    shown = shell.run("ops", "get", run, "--json").json
    assert (shown["state"], shown["metadata"]) == ("cancelled", {"cancelled_by": "bob", "reason": "enough"})
    assert shown["git_ref"] == NASTY
    assert '"cancelled_by":"bob"' in shell.run("ops", "get", run).out
    assert shell.run("ops", "follow", run).code == 1
    assert [one["run_id"] for one in shell.run("ops", "list", "--state", "cancelled", "--json").json] == [run]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("queue", "shop", "staging", "--metadata", "[1]"), 2, "a JSON object"),
        (("event", "run-99", "hello"), 3, "there is no ops run run-99"),
        (("event", "seventeen", "hello"), 2, "the id of a run, such as run-17"),
        (("event", "run-99", "-", "--key", "k"), 2, "take no --key"),
        (("finish", "run-99", "success", "--set", "error"), 2, "NAME=TEXT"),
        (("finish", "run-99", "success", "--token", "x"), 2, "the token that claim returned"),
    ],
)
def test_bad_input_is_one_line(sqlite_shell: Shell, arguments: tuple[str, ...], code: int, said: str) -> None:
    """S3, U2"""
    ended = sqlite_shell.run("ops", *arguments)
    assert (ended.code, ended.out) == (code, "")
    assert said in ended.err
    assert "Traceback" not in ended.err


def claimed(shell: Shell) -> tuple[str, str]:
    """Queue and claim a run; return its id and token."""
    assert shell.run("ops", "queue", "shop", "staging").code == 0
    told = dict(line.split("=", 1) for line in shell.run("ops", "claim", "worker-001").out.splitlines())
    return told["run_id"], told["token"]


def ask(shell: Shell, statement: str, name: str) -> object:
    """Return one value of a table."""
    url = shell.environment["DETENT_DATABASE_URL"]
    with closing(plain_connection(url)) as connection:
        (value,) = connection.execute(statement.format(table(url, name))).fetchone()
        return value


def listening(shell: Shell, run: str, token: str) -> subprocess.Popen[bytes]:
    """Start `detent ops event -` at the end of a silent pipe."""
    argv = shell.argv("ops", "event", run, "-", "--token", token, "--renew-every", "0.05s")
    return subprocess.Popen(
        argv, stdin=subprocess.PIPE, stderr=subprocess.PIPE, cwd=shell.directory, env=shell.environment
    )


def test_a_silent_build_renews_its_lease(shell: Shell) -> None:
    """O4: a build that writes nothing for more than ten minutes does not lose its run."""
    run, token = claimed(shell)

    def expiry() -> object:
        return ask(shell, "SELECT max(expires_at) FROM {}", "lease")

    before = expiry()
    with listening(shell, run, token) as process:
        until(lambda: expiry() != before)
        assert process.stdin is not None
        process.stdin.write(b"be")
        process.stdin.flush()
        again = expiry()
        until(lambda: expiry() != again)
        process.stdin.write(b"gun\nlast")
        process.stdin.close()
        assert process.wait() == 0
    lines = [json.loads(one) for one in shell.run("ops", "follow", run, "--no-wait", "--json").out.splitlines()]
    assert [one["message"] for one in lines[1:]] == ["begun", "last"]


def test_a_silent_build_notices_a_cancel_of_its_job(shell: Shell, world: World) -> None:
    """J8: even while no line comes: exit code 4, and the pipe is closed."""
    run, token = claimed(shell)
    with listening(shell, run, token) as process:
        world.app.jobs.get(run.removeprefix("run-")).cancel(actor="bob", reason="enough")
        assert process.stderr is not None
        said = process.stderr.read().decode()
        assert (process.wait(), "the job is cancelled" in said) == (4, True), said
        assert process.stdin is not None
        process.stdin.close()
    shown = shell.run("ops", "get", run, "--json").json
    assert (shown["state"], shown["metadata"]) == ("cancelled", {"cancelled_by": "bob", "reason": "enough"})
    assert shell.run("ops", "renew", run, "--token", token).code == 4


def test_a_run_can_expire_and_be_renewed(sqlite_shell: Shell) -> None:
    shell = sqlite_shell
    run = shell.run("ops", "queue", "shop", "staging", "--expires-in", "0.001s").out.strip()
    assert shell.run("ops", "claim", "worker-001").code == 3
    assert shell.run("ops", "get", run, "--json").json["state"] == "cancelled"
    run, token = claimed(shell)
    assert shell.run("ops", "renew", run, "--token", token).out == "claimed\n"


def test_a_claim_judges_alerts_if_no_worker_runs(shell: Shell, world: World) -> None:
    """M2: shell scripts may be the only workers."""
    policy = ("--measure", "success_rate", "--each", "queue", "--threshold", "0.9", "--window", "1h", "--at-least", "1")
    assert shell.run("alerts", "policies", "set", "failing", *policy).code == 0
    run, token = claimed(shell)
    shell.run("ops", "event", run, "begun", "--token", token)
    assert shell.run("ops", "finish", run, "failed", "--token", token).code == 0
    # As if the time between two rounds had passed.
    holder = ask(shell, "SELECT holder FROM {} WHERE name = 'alerts'", "service")
    assert isinstance(holder, int)
    world.app.store.service_drop("alerts", holder)
    assert shell.run("ops", "claim", "worker-001").code == 3
    assert "failing" in shell.run("alerts", "list").out
    assert shell.run("alerts", "judge").err == "not judged: a worker or another command did so in the last 15 seconds\n"
