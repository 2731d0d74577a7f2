"""`detent identities`: what tells this database from every other."""

from __future__ import annotations

import click

from detent.cli import render
from detent.cli.command import Group, reason_option
from detent.cli.session import Session

__all__ = ["command"]


@click.group("identities", cls=Group)
def command() -> None:
    """Show and renew the identity of the database, which is part of every effect key."""


@command.command("list")
@click.pass_obj
def list_(session: Session) -> None:
    """Show the identities this database has had, oldest first."""
    with session.open() as app:
        found = app.identities.list()
    if session.json:
        render.json_value([render.plain(one) for one in found])
        return
    render.table(
        ["IDENTITY", "JOBS FROM", "MADE", "BY", "REASON"],
        [[one.identity, one.first_id, one.made_at, one.made_by, one.reason] for one in found],
        empty="this database has no identity; `detent identities renew` makes one",
    )


@command.command("current")
@click.pass_obj
def current(session: Session) -> None:
    """Print the identity of this database."""
    with session.open() as app:
        identity = app.identities.current()
    if session.json:
        render.json_value({"identity": identity})
    else:
        render.out(identity)


@command.command("renew")
@reason_option
@click.pass_obj
def renew(session: Session, reason: str | None) -> None:
    """Give this database a new identity, after a restore from a backup or into a copy.

    Existing jobs keep their effect keys; new jobs get keys that no other copy of this database gives. Stop the workers
    first: it is refused if a worker was seen in the last minute.
    """
    with session.open() as app:
        identity = app.identities.renew(reason=reason)
    if session.json:
        render.json_value({"identity": identity})
    else:
        render.out(f"The new identity is {identity}.")
