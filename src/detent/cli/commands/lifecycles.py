"""`detent lifecycles`: draw lifecycles, and move the entities of an application by them."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import click

from detent.cli import output
from detent.cli.command import Group, with_tasks
from detent.cli.failures import NOT_FOUND, CommandFailed
from detent.cli.options import flag, option, reason_option
from detent.cli.session import Session
from detent.lifecycle.definition import Lifecycle
from detent.model import json_codec
from detent.model.terminal_text import line

if TYPE_CHECKING:
    from detent.app.detent import Detent

__all__ = ["lifecycles"]

lifecycles = Group(
    "lifecycles",
    help="Draw lifecycles; move entities of your own.",
    examples=("detent lifecycles diagram job", "detent lifecycles history order 17 --app shop:app"),
)
lifecycle_argument = click.argument("lifecycle", metavar="LIFECYCLE")
entity_id_argument = click.argument("entity_id", metavar="ID")


@lifecycles.command("list")
@flag("--own", "Also list Detent's own lifecycles.")
@click.pass_obj
def list_(session: Session, own: bool) -> None:
    """List the lifecycles that the application attaches to its tables.

    Needs an application, or --own.
    """
    if not own:
        session.require_application()
    with session.open_or_create() as app:
        found = app.lifecycles.list(own=own)
    session.show_rows(
        found,
        output.columns("name", ("STATES", lambda one: ", ".join(one.states))),
        empty="no lifecycles",
        objects=({"name": one.name, "states": list(one.states)} for one in found),
    )


@lifecycles.command()
@click.argument("name", metavar="NAME")
@click.pass_obj
def get(session: Session, name: str) -> None:
    """Show the transitions of a lifecycle.

    One of Detent's own (job, execution, batch_run, …), or with --app one that the application attached.
    """
    with session.open_or_create() as app:
        found = app.lifecycles.get(name)
    session.show_rows(
        found.transitions,
        output.columns("source", "target", "trigger", "actor", "means"),
        empty="no transitions",
        objects=(dataclasses.asdict(one) for one in found.transitions),
    )


@lifecycles.command()
@click.argument("name", metavar="NAME")
@click.pass_obj
def counts(session: Session, name: str) -> None:
    """Count the things in each state of a lifecycle.

    One of Detent's own (job, execution, batch_run, …), or with --app one that the application attached.
    """
    with session.open() as app:
        found = app.lifecycles.counts(name)
    number = ("NUMBER", lambda one: "" if one.number is None else f"{one.number}{'+' if one.more else ''}")
    session.show_rows(found, output.columns("state", number), empty="no states")


@lifecycles.command()
@click.argument("name", metavar="NAME")
@option("--format", "Format to print.", ["mermaid", "svg"], default="mermaid")
@click.pass_obj
def diagram(session: Session, name: str, format: Any) -> None:
    """Draw a lifecycle.

    One of Detent's own (job, execution, batch_run, …), or with --app one that the application attached.
    """
    with session.open_or_create() as app:
        text = app.lifecycles.diagram(name, format=format)
    session.answer({"name": name, "format": format, "text": text}, text.rstrip("\n"))


@lifecycles.command()
@lifecycle_argument
@entity_id_argument
@click.argument("trigger", metavar="TRIGGER")
@option("--metadata", "JSON object to keep with the transition.", "JSON")
@reason_option
@with_tasks
def move(
    session: Session,
    app: Detent,
    lifecycle: str,
    entity_id: str,
    trigger: str,
    metadata: str | None,
    reason: str | None,
) -> None:
    """Move an entity of your own by a declared trigger. Needs an application."""
    decoded = None if metadata is None else json_codec.decode(metadata, field="--metadata")
    moved = app.lifecycles.move(_attached(app, lifecycle), entity_id, trigger, metadata=decoded, reason=reason)
    session.answer(
        {"id": moved.entity_id, "state": moved.state, "changed": moved.changed},
        f"{line(lifecycle)} {line(entity_id)}: {moved.state}",
    )


@lifecycles.command()
@lifecycle_argument
@entity_id_argument
@with_tasks
def history(session: Session, app: Detent, lifecycle: str, entity_id: str) -> None:
    """List every transition of an entity of your own. Needs an application."""
    found = app.lifecycles.history(_attached(app, lifecycle), entity_id)
    session.show_rows(found, output.TRANSITIONS, empty="no transitions")


def _attached(app: Detent, name: str) -> Lifecycle:
    known = {one.name: one for one in app.lifecycles.list()}
    if name not in known:
        raise CommandFailed(f"there is no lifecycle {name!r}; there are: {', '.join(known) or 'none'}", NOT_FOUND)
    return known[name]
