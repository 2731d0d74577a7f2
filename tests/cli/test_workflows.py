"""`detent workflows`, and what `detent jobs` shows of a parked one."""

from __future__ import annotations

from tests.cli.shell import APP, Shell, World
from tests.contract.workflows.sample_workflows import begin, park, record, signal

WORKFLOW = """
from detent import WorkflowContext


@app.workflow(name="expense")
def expense(ctx: WorkflowContext, report: int) -> object:
    return ctx.wait_for("decision")
"""


def parked(world: World) -> int:
    """A workflow that has recorded two steps, one of them secret, and waits for a signal."""
    store = world.app.store
    held = begin(store)
    record(store, held, "ask", value='{"report":7}')
    record(store, held, "password", seq=2, secret=True, value='"hunter2"')
    world.says(held.job_id, "status", '{"waits_for":"the boss"}')
    park(store, held, signal("decision"), parked_for="signal decision")
    return held.job_id


def test_parked_workflows_are_checked_against_the_code(shell: Shell, world: World) -> None:
    """What broke: with --json it raised AttributeError as soon as there was a workflow to show."""
    job_id = str(parked(world))
    found = shell.run("workflows", "check", "--json", "--app", "shop:app")
    (row,) = found.json
    assert (row["job_id"], row["task"], row["version"]) == (job_id, "mail.send", 1)
    assert found.code == 1, "the application lacks the workflow"


def test_looking_at_a_parked_workflow(shell: Shell, world: World) -> None:
    """Lists, one workflow, its steps without secrets, its tree, and why it waits."""
    job_id = str(parked(world))
    (found,) = shell.run("workflows", "list", "--state", "parked", "--json").json
    assert (found["id"], found["state"], found["parked_for"]) == (job_id, "parked", "signal decision")
    assert found["status"] == {"waits_for": "the boss"}
    assert shell.run("workflows", "get", job_id, "--json").json["unread"] == 0
    assert "the boss" in shell.run("workflows", "get", job_id).out
    (wait,) = shell.run("workflows", "waits", "--signal", "decision", "--json").json
    assert (wait["job_id"], wait["name"]) == (job_id, "decision")
    assert shell.run("workflows", "versions", "--json").json[0]["workflows"] == 1
    steps = shell.run("workflows", "steps", job_id, "--json").json
    assert [(one["path"], one["value"]) for one in steps] == [("ask", {"report": 7}), ("password", "[redacted]")]
    listed = shell.run("workflows", "steps", job_id).rows[1:]
    assert [row[:2] for row in listed] == [["ask", "call"], ["password", "call"]]
    assert [node["state"] for node in shell.run("workflows", "tree", job_id, "--json").json["nodes"]] == ["parked"]
    assert shell.run("workflows", "tree", job_id).rows[1][:2] == [job_id, "parked"]
    assert "for signal 'decision', without a time limit; 0 signals" in shell.run("jobs", "why", job_id).out
    assert shell.run("jobs", "list").rows[1][:2] == [job_id, "parked"]
    (job,) = shell.run("jobs", "list", "--json").json
    assert (job["state"], job["parked_for"]) == ("pending", "signal decision")
    shown = shell.run("jobs", "get", job_id).out
    assert "parked for" in shown
    assert "9999" not in shown


def test_a_signal_by_id(shell: Shell, world: World) -> None:
    job_id = parked(world)
    words = ("workflows", "signal", job_id, "decision", '{"approved": true}', "--dedupe", "mail-1")
    assert shell.run(*words, "--actor", "ana", "--reason", "she said so").out == (
        f"job {job_id}: signal decision is in the mailbox\n"
    )
    assert shell.run(*words, "--json").json["created"] is False
    (kept,) = world.app.store.signal_list(job_id)
    assert (kept.payload, kept.actor, kept.reason) == ('{"approved":true}', "ana", "she said so")
    assert shell.run("jobs", "list").rows[1][:2] == [str(job_id), "pending"]
    assert shell.run("workflows", "signal", job_id, "decision", "no", "--dedupe", "mail-1").code == 2
    assert shell.run("workflows", "signal", job_id, "decision", "1", "--dedupe", "mail-1").code == 4
    assert shell.run("workflows", "signal", 10**6, "decision").code == 3
    assert shell.run("workflows", "signal", job_id).code == 2
    assert "Give the ID of the workflow, or its --key, and the name" in shell.run("workflows", "signal").err


def test_a_signal_by_key_starts_the_workflow(sqlite_shell: Shell) -> None:
    (sqlite_shell.directory / "shop.py").write_text(APP.replace("app.lifecycles.attach", "# ") + WORKFLOW)
    by_key = ("workflows", "signal", "decision", '"yes"', "--key", "report-8")
    assert sqlite_shell.run(*by_key).code == 3
    start = ("--start", "expense", "--arguments", '{"report": 8}')
    assert sqlite_shell.run(*by_key, *start).code == 2
    made = sqlite_shell.run(*by_key, *start, "--app", "shop:app", "--json")
    assert made.json["created"] is True
    again = sqlite_shell.run(*by_key, *start, "--app", "shop:app", "--json")
    assert again.json["job_id"] == made.json["job_id"]
    (job,) = sqlite_shell.run("jobs", "list", "--json").json
    assert (job["task"], job["key"], job["payload"]) == ("expense", "report-8", {"report": 8})


def test_rewind_and_fork(shell: Shell, world: World) -> None:
    """F17: first the list of what would be repeated; then each, with its actor and reason on record."""
    job_id = str(parked(world))
    shell.run("workflows", "signal", job_id, "other", "1")
    steps = shell.run("workflows", "steps", job_id, "--since", "password", "--json").json
    assert [(one["path"], one["value"]) for one in steps] == [("password", "[redacted]")]
    assert "the last ones are 'ask', 'password'" in shell.run("workflows", "steps", job_id, "--since", "x").err
    words = ("--at", "password", "--replace", '{"ask": {"report": 8}}', "--payload", '{"to": 9}', "--actor", "ana")
    forked = shell.run("workflows", "fork", job_id, *words, "--reason", "what if", "--json").json
    assert (forked["state"], forked["forked_from"], forked["unread"]) == ("pending", job_id, {"other": 1})
    (copy,) = shell.run("workflows", "steps", forked["id"], "--json").json
    assert (copy["path"], copy["value"], copy["attempt"]) == ("ask", {"report": 8}, 0)
    assert shell.run("workflows", "get", forked["id"], "--json").json["forked_from"] == job_id
    assert (
        f"is a fork of job {job_id}, which keeps its 1 unread signal: other"
        in shell.run("workflows", "fork", job_id).out
    )
    assert "what if" in shell.run("jobs", "history", forked["id"]).out
    out = shell.run("workflows", "rewind", job_id, "--to", "password", "--reason", "again").out
    assert out == f"job {job_id} is pending: it continues with password\n"
    assert [one["path"] for one in shell.run("workflows", "steps", job_id, "--json").json] == ["ask"]
    assert shell.run("workflows", "rewind", job_id, "--to", "password").code == 4
    assert shell.run("workflows", "rewind", job_id, "--to", "ask", "--force").code == 2
    assert shell.run("workflows", "rewind", job_id).code == 2
    assert shell.run("workflows", "fork", job_id, "--replace", "[1]").code == 2
