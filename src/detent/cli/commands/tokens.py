"""`detent tokens`: create, list and revoke tokens of the HTTP API."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from detent.cli import output
from detent.cli.command import Group, with_app
from detent.cli.options import duration, flag, option, page_options, reason_option
from detent.cli.session import Session
from detent.model.terminal_text import line
from detent.model.token_records import ROLES, Role

if TYPE_CHECKING:
    from detent.app.detent import Detent

__all__ = ["tokens"]

tokens = Group(
    "tokens",
    help="Create, list and revoke tokens of the HTTP API.",
    examples=("detent tokens create ana --role operator --expires-in 90d", "detent tokens revoke ana"),
)
name_argument = click.argument("name", metavar="NAME")


@tokens.command()
@name_argument
@option("--role", "What it may do: read, also act, or everything.", ROLES, default="viewer")
@option("--tenant", "The only tenant that it reaches. Default: all.", "NAME")
@option("--expires-in", "Time until it expires, such as 12h or 90d. Default: never.", duration)
@reason_option
@with_app
def create(
    session: Session,
    app: Detent,
    name: str,
    role: Role,
    tenant: str | None,
    expires_in: float | None,
    reason: str | None,
) -> None:
    """Create a token and print it. It cannot be printed again.

    Changes that are made with the token are on record under NAME.
    """
    made = app.tokens.create(name, role=role, tenant=tenant, expires_in=expires_in, reason=reason)
    if not session.json:
        reach = "all tenants" if made.tenant is None else f"tenant {line(made.tenant)}"
        until = "" if made.expires_at is None else f", until {output.format_time(made.expires_at)}"
        output.print_note(f"token {line(made.name)}: {made.role}, {reach}{until}. Keep it: it is not shown again.")
    session.answer(output.to_object(made), made.token)


@tokens.command("list")
@flag("--revoked", "List revoked tokens too.")
@page_options
@with_app
def list_(session: Session, app: Detent, revoked: bool, limit: int, after: str | None) -> None:
    """List tokens, the newest first."""
    columns = output.columns(
        "name", "role", "tenant", "expires_at", "created_at", "created_by", "last_used_at", "revoked_at", "revoked_by"
    )
    found = app.tokens.list(revoked=revoked, limit=limit, after=after)
    session.show_rows(found, columns, empty="no tokens; create one with `detent tokens create`")


@tokens.command()
@name_argument
@reason_option
@with_app
def revoke(session: Session, app: Detent, name: str, reason: str | None) -> None:
    """Revoke a token for good. Its open streams end within ten seconds."""
    session.show_moved("token", app.tokens.revoke(name, reason=reason))
