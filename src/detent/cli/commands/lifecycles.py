"""`detent lifecycles`: which moves are declared, and the entities that follow them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from detent.cli import render
from detent.cli.command import Group, reason_option
from detent.cli.failures import NOT_FOUND, CommandFailed
from detent.cli.session import Session
from detent.lifecycle.declare import Lifecycle
from detent.model import jsondoor
from detent.model.escape import line

if TYPE_CHECKING:
    from detent.app.detent import Detent

__all__ = ["command"]


@click.group("lifecycles", cls=Group)
def command() -> None:
    """Draw lifecycles; move entities of your own and show their history."""


@command.command("list")
@click.pass_obj
def list_(session: Session) -> None:
    """List the lifecycles that the application attaches to its tables. Needs an application."""
    session.require_application()
    with session.open_or_new() as app:
        found = app.lifecycles.list()
    if session.json:
        render.json_value([{"name": one.name, "states": list(one.states)} for one in found])
        return
    render.table(["NAME", "STATES"], [[one.name, ", ".join(one.states)] for one in found], empty="no lifecycles")


@command.command()
@click.argument("name", metavar="NAME")
@click.option("--svg", "format", flag_value="svg", help="As a picture.")
@click.option("--mermaid", "format", flag_value="mermaid", default=True, help="As Mermaid text. The default.")
@click.pass_obj
def diagram(session: Session, name: str, format: Any) -> None:
    """Draw a lifecycle.

    One of Detent's own (job, execution, batch_run, …), or with --app one that the application attached.
    """
    with session.open_or_new() as app:
        text = app.lifecycles.diagram(name, format=format)
    if session.json:
        render.json_value({"name": name, "format": format, "text": text})
    else:
        render.out(text.rstrip("\n"))


@command.command()
@click.argument("lifecycle", metavar="LIFECYCLE")
@click.argument("entity_id", metavar="ID")
@click.argument("trigger", metavar="TRIGGER")
@click.option("--metadata", metavar="JSON", help="A JSON object that is kept with the transition.")
@reason_option
@click.pass_obj
def move(
    session: Session, lifecycle: str, entity_id: str, trigger: str, metadata: str | None, reason: str | None
) -> None:
    """Move an entity of your own by a declared trigger. Needs an application."""
    told = None if metadata is None else jsondoor.decode(metadata, field="--metadata")
    with session.open_with_tasks() as app:
        moved = app.lifecycles.move(_attached(app, lifecycle), entity_id, trigger, metadata=told, reason=reason)
    if session.json:
        render.json_value({"id": moved.entity_id, "state": moved.state, "changed": moved.changed})
    else:
        render.out(f"{line(lifecycle)} {line(entity_id)}: {moved.state}")


@command.command()
@click.argument("lifecycle", metavar="LIFECYCLE")
@click.argument("entity_id", metavar="ID")
@click.pass_obj
def history(session: Session, lifecycle: str, entity_id: str) -> None:
    """List every transition of an entity of your own. Needs an application."""
    with session.open_with_tasks() as app:
        render.moves(session.json, app.lifecycles.history(_attached(app, lifecycle), entity_id))


def _attached(app: Detent, name: str) -> Lifecycle:
    known = {one.name: one for one in app.lifecycles.list()}
    if name not in known:
        raise CommandFailed(f"there is no lifecycle {name!r}; there are: {', '.join(known) or 'none'}", NOT_FOUND)
    return known[name]
