"""Reads the nouns, verbs and arguments that each door offers.

A door is a mapping from `(noun, verb)` to the names of its arguments, all in Python's spelling. Another door, such as
HTTP, joins by a function that returns such a mapping.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

import click

from detent.app.detent import Detent
from detent.cli.command import COMMON
from detent.cli.main import root
from detent.http.api import list_verbs
from detent.http.verbs import APPLICATION_VERBS, WORKFLOW_VERBS
from tests.surface.nouns import NOUNS, public_methods

__all__ = ["Door", "command_line", "http", "python"]

Door = dict[tuple[str, str], set[str]]

GROUPS = {
    "Alerts": "alerts",
    "BatchRun": "runs",
    "DeadJobs": "dead",
    "Identities": "identities",
    "Job": "jobs",
    "JobSelection": "jobs",
    "Jobs": "jobs",
    "Lifecycles": "lifecycles",
    "Limits": "limits",
    "Operation": "operations",
    "Operations": "operations",
    "Ops": "ops",
    "PipelineRun": "runs",
    "Policies": "alerts policies",
    "Queues": "queues",
    "Reconciliation": "runs",
    "Record": "record",
    "Runs": "runs",
    "Schedules": "schedules",
    "Tokens": "tokens",
    "Watermarks": "watermarks",
    "Webhooks": "webhooks",
    "Worker": "workers",
    "Workers": "workers",
    "Workflows": "workflows",
}
"""The noun that each class of the Python surface belongs to."""


def python() -> Door:
    """Return what Python offers. The verbs of a handle belong to its noun."""
    found: Door = {
        ("", name): set(inspect.signature(getattr(Detent, name)).parameters) - {"self"} for name in APPLICATION_VERBS
    }
    for name, (plain, _) in NOUNS.items():
        for verb, method in public_methods(plain).items():
            arguments = {one for one in inspect.signature(method).parameters if one != "self"}
            noun = "workflows" if name == "Job" and verb in WORKFLOW_VERBS else GROUPS[name]
            found.setdefault((noun, verb.rstrip("_")), set()).update(arguments)
    return found


def command_line() -> Door:
    """Return what `detent NOUN VERB` offers."""
    return dict(_commands(root, ""))


def http() -> Door:
    """Return what the HTTP API offers. An id in the path is an argument; the server knows the actor."""
    found: Door = {}
    for verb in list_verbs():
        arguments = {
            *re.findall(r"{(\w+)", verb.path),
            *verb.arguments.__struct_fields__,
            *verb.filters.__struct_fields__,
        }
        name = verb.name.removeprefix("bulk_").removesuffix("_by_key").rstrip("_")
        noun, name = ("", verb.noun) if verb.noun in APPLICATION_VERBS else (verb.noun, name)
        found.setdefault((noun, name), set()).update(arguments, ("actor",))
    return found


def _commands(group: click.Group, path: str) -> Iterator[tuple[tuple[str, str], set[str]]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from _commands(command, f"{path} {name}".strip())
        else:
            options = {str(one.name) for one in command.params}
            yield (path, name.replace("-", "_")), options | set(COMMON)
