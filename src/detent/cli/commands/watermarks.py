"""`detent watermarks`: how far each source has been ingested."""

from __future__ import annotations

import click

from detent.cli import render
from detent.cli.command import Group, paged, say_more
from detent.cli.session import Session

__all__ = ["command"]


@click.group("watermarks", cls=Group)
def command() -> None:
    """List watermarks: how far each source has been ingested."""


@command.command("list")
@click.option("--tenant", metavar="NAME", help="Only watermarks of this tenant.")
@paged
@click.pass_obj
def list_(session: Session, tenant: str | None, limit: int, after: str | None) -> None:
    """List watermarks, each with the run that set it."""
    with session.open() as app:
        found = app.watermarks.list(tenant=tenant, limit=limit, after=after)
    say_more(found)
    if session.json:
        render.json_value(render.records(found))
        return
    render.table(
        ["NAME", "TENANT", "VALUE", "RUN", "MOVED"],
        [[one.name, one.tenant, one.value, str(one.run_id), one.moved_at] for one in found],
        empty="no watermarks: no pipeline run has completed yet",
    )


@command.command()
@click.argument("name", metavar="NAME")
@click.option("--tenant", metavar="NAME", default="", help="Of this tenant.")
@click.pass_obj
def get(session: Session, name: str, tenant: str) -> None:
    """Print up to when a source has been ingested; nothing before its first run has completed."""
    with session.open() as app:
        value = app.watermarks.get(name, tenant=tenant)
    if session.json:
        render.json_value({"name": name, "tenant": tenant, "value": value})
    else:
        render.out(render.when(value) if value is not None else "")
