"""Every noun, verb and argument of Python is at the other doors too, in the same spelling."""

from __future__ import annotations

import shlex

import click
import pytest
from click.testing import CliRunner

from detent.cli.command import Group
from detent.cli.main import root
from detent.cli.session import Session
from detent.http.verbs import LEFT_OUT
from tests.surface.doors import Door, command_line, http, python

DOORS: dict[str, Door] = {"command line": command_line(), "HTTP": http()}
"""The doors that are compared with Python."""

WITHOUT_COMMAND = {
    ("jobs", "count"): "`--dry-run` of the bulk commands counts",
    ("jobs", "details"): "`jobs get` shows them",
    ("jobs", "progress"): "`jobs get` shows it",
    ("jobs", "refresh"): "every command reads anew",
    ("jobs", "state_at"): "`jobs get --at`",
    ("jobs", "where"): "the filters of the bulk commands",
    ("lifecycles", "attach"): "declared in code",
    ("operations", "refresh"): "every command reads anew",
    ("operations", "step"): "`operations wait` does every step",
    ("record", "repair"): "`detent repair`",
    ("record", "verify"): "`detent verify`",
    ("runs", "newer_runs"): "`runs roll-back` names them",
    ("runs", "preview_named"): "`runs preview` takes the name",
    ("runs", "reconciliations"): "`runs get` shows the last one",
    ("runs", "refresh"): "every command reads anew",
    ("runs", "start_named"): "`runs start` takes the name",
    ("runs", "targets"): "`runs changes` shows them",
    ("schedules", "left"): "`schedules list` marks them",
    ("schedules", "origins"): "`schedules list` shows them",
    ("workers", "refresh"): "every command reads anew",
}
"""Verbs that need no command, and why."""

WITHOUT_PATH = LEFT_OUT | {
    ("jobs", "where"): "the filters of the bulk verbs",
    ("runs", "preview_named"): "`runs/preview` takes the name",
    ("runs", "start_named"): "`runs/start` takes the name",
}
"""Verbs that need no path, and why."""

WITHOUT = {"command line": WITHOUT_COMMAND, "HTTP": WITHOUT_PATH}

OTHER_OPTIONS = {
    ("jobs", "cancel", "undo"): "--no-undo",
    ("jobs", "move", "priority"): "--to-priority, since --priority could be taken for a filter; so --to-queue",
    ("ops", "queue", "expires_at"): "--expires-in, which shells can write without a date",
    ("queues", "limit", "limit"): "--concurrency, --rate, --per and --burst",
    ("runs", "preview", "value"): "the name of the batch and its fields as JSON",
    ("runs", "start", "value"): "the name of the pipeline and its fields as JSON",
    ("schedules", "set", "call"): "the name of the task and its arguments as JSON",
}
"""Options that are spelled otherwise, and how."""

OTHER_FIELDS = {
    ("jobs", "events", "follow"): "page by page, with `after`",
    ("workflows", "stream", "follow"): "page by page, with `after`",
    ("jobs", "move", "priority"): "`to_priority`, since `priority` could be taken for a filter; so `to_queue`",
    ("lifecycles", "history", "lifecycle"): "its name, in the path",
    ("lifecycles", "move", "lifecycle"): "its name, in the path",
    ("queues", "limit", "limit"): "`concurrency`, `rate`, `per` and `burst`",
    ("runs", "preview", "value"): "`name` and `payload`",
    ("runs", "start", "value"): "`name` and `payload`",
    ("schedules", "set", "call"): "`task` and `payload`",
}
"""Fields that are spelled otherwise, and how."""

OTHERWISE = {"command line": OTHER_OPTIONS, "HTTP": OTHER_FIELDS}


@pytest.mark.parametrize("door", DOORS)
def test_every_verb_is_there(door: str) -> None:
    assert {verb for verb in python() if verb not in DOORS[door]} == set(WITHOUT[door])


@pytest.mark.parametrize("door", DOORS)
def test_every_argument_is_there(door: str) -> None:
    offered = DOORS[door]
    missing = {
        (*verb, argument)
        for verb, arguments in python().items()
        if verb in offered
        for argument in arguments - offered[verb]
    }
    assert missing == set(OTHERWISE[door])


def group_named(noun: str) -> Group:
    found: click.Command = root
    for name in noun.split():
        assert isinstance(found, click.Group)
        found = found.get_command(click.Context(found), name) or found
    assert isinstance(found, Group)
    return found


def test_every_group_shows_two_examples_that_are_commands() -> None:
    groups = {noun for noun, _ in command_line() if noun}
    for noun in groups:
        shown = CliRunner().invoke(root, [*noun.split(), "--help"], obj=Session()).output
        examples = group_named(noun).examples
        assert len(examples) == 2
        for example in examples:
            assert example in shown
            said = shlex.split(example)[1:]
            context = root.make_context("detent", said, obj=Session(), resilient_parsing=False)
            group: click.Command = root
            while isinstance(group, click.Group):
                name, found, said = group.resolve_command(context, said)
                assert found is not None
                group = found
            group.make_context(str(name), said, obj=Session())


def test_every_change_takes_actor_and_reason() -> None:
    """Verbs that take the one take the other. What takes neither changes nothing, or is listed here."""
    changing = {
        ("alerts", "judge"), ("alerts", "test"), ("operations", "step"),
        ("ops", "claim"), ("ops", "event"), ("ops", "queue"), ("ops", "renew"),
        ("runs", "preview_named"), ("runs", "start_named"), ("lifecycles", "attach"),
    }  # fmt: skip
    reading = {
        *(
            "changes",
            "check",
            "count",
            "counts",
            "current",
            "deliveries",
            "details",
            "diagram",
            "environments",
            "events",
        ),
        *(
            "executions",
            "export",
            "invariants",
            "figures",
            "follow",
            "get",
            "history",
            "left",
            "list",
            "mismatches",
            "newer_runs",
            "next",
        ),
        *("origins", "partitions", "progress", "rates", "reconciliations", "recoveries", "refresh", "report"),
        *(
            "silent",
            "state_at",
            "steps",
            "stream",
            "targets",
            "tree",
            "preview_undo",
            "verify",
            "versions",
            "wait",
            "waits",
            "where",
            "why",
        ),
    }
    for verb, arguments in python().items():
        if verb == ("record", "search"):
            continue
        both = {"actor", "reason"} & arguments
        assert both in (set(), {"actor", "reason"}), verb
        assert both or verb in changing or verb[1] in reading, verb
