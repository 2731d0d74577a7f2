"""`detent migrate`: bring the schema of a database up to date."""

from __future__ import annotations

from contextlib import suppress
from typing import Literal

import click

from detent.cli import render
from detent.cli.command import Command
from detent.cli.failures import FAILED, OK
from detent.cli.session import Session
from detent.errors import SchemaMissing, SchemaTooOld

__all__ = ["command"]

Instead = Literal["check", "print"]


@click.command("migrate", cls=Command)
@click.option(
    "--check", "instead", flag_value="check", help="Only say what is missing. Exit code 1 where something is."
)
@click.option("--print", "instead", flag_value="print", help="Only print the SQL that would be run.")
@click.option("--roles", is_flag=True, help="Also make the group roles that logins can be given. PostgreSQL only.")
@click.pass_obj
def command(session: Session, instead: Instead | None, roles: bool) -> int:
    """Bring the schema up to date.

    With --app, also install the guards of its attached tables, and write the schedules and limits that its code
    declares. Safe when many do it at once, and when there is nothing to do.
    The roles are detent_viewer, detent_client, detent_worker and detent_admin; each may do what those before it may.
    """
    if instead and roles:
        raise click.UsageError("--roles changes the database, --check and --print do not: choose one of them")
    match instead:
        case "check":
            return _check(session)
        case "print":
            return _print(session)
        case None:
            return _migrate(session, roles=roles)


def _migrate(session: Session, *, roles: bool) -> int:
    with session.open_or_new() as app:
        applied = app.migrate()
        if roles:
            app.store.install_roles()
    if session.json:
        render.json_value({"applied": applied, "roles": roles})
        return OK
    for name in applied:
        render.out(f"applied {name}")
    if not applied:
        render.note("the schema is up to date")
    if roles:
        render.note("the roles are there; GRANT detent_worker TO a login, and so on")
    return OK


def _check(session: Session) -> int:
    with session.open_or_new() as app:
        facts = app.store_as_found.facts()
        # A schema that is too new, or has a hole in its list of migrations, is raised.
        with suppress(SchemaMissing, SchemaTooOld):
            app.store_as_found.ready(create=False)
    if session.json:
        render.json_value({"schema": facts.schema, "missing": facts.missing, "functions": facts.functions})
    for name in () if session.json else facts.missing:
        render.out(f"missing {name}")
    for name in () if session.json else facts.functions:
        render.out(f"differs function {name}")
    if facts.missing or facts.functions:
        return FAILED
    render.note("the schema is up to date")
    return OK


def _print(session: Session) -> int:
    with session.open_or_new() as app:
        script = app.store_as_found.migration_sql()
    if session.json:
        render.json_value({"sql": script})
    elif script:
        render.out(script.rstrip("\n"))
    if not script:
        render.note("the schema is up to date")
    return OK
