"""`detent migrate`: bring the schema of a database up to date."""

from __future__ import annotations

from typing import Literal

import click

from detent.cli import render
from detent.cli.command import Command
from detent.cli.failures import FAILED, OK
from detent.cli.session import Session

__all__ = ["command"]

Instead = Literal["check", "print"]


@click.command("migrate", cls=Command)
@click.option(
    "--check", "instead", flag_value="check", help="Only say what is missing or differs. Exit code 1 if something is."
)
@click.option("--print", "instead", flag_value="print", help="Only print the SQL that would be run.")
@click.option("--roles", is_flag=True, help="Also make the group roles that logins can be given. PostgreSQL only.")
@click.pass_obj
def command(session: Session, instead: Instead | None, roles: bool) -> int:
    """Bring the schema up to date.

    Applies missing migrations, and installs the functions, triggers and views of this release. With --app, also
    installs the guards of its attached tables, and writes the schedules and limits that its code declares.

    Jobs can run meanwhile: every step waits for a lock only for a moment and is tried again. If it is interrupted,
    run it again: it continues. An older release refuses to migrate a database that a newer one has migrated.

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
    def progress(name: str) -> None:
        if not session.json:
            render.out(f"applied {name}")

    with session.open_or_new() as app:
        applied = app.migrate(progress)
        if roles:
            app.store.install_roles()
    if session.json:
        render.json_value({"applied": applied, "roles": roles})
        return OK
    if not applied:
        render.note("the schema is up to date")
    if roles:
        render.note("the roles are there; GRANT detent_worker TO a login, and so on")
    return OK


def _check(session: Session) -> int:
    with session.open_or_new() as app:
        facts = app.store_as_found.facts()
        # What migrate would refuse is raised: a newer release, an unreleased one, a hole in the list of migrations.
        app.store_as_found.migration_sql()
    if session.json:
        render.json_value({"schema": facts.schema, "missing": facts.missing, "differs": facts.differs})
    for name in () if session.json else facts.missing:
        render.out(f"missing {name}")
    for name in () if session.json else facts.differs:
        render.out(f"differs {name}")
    if facts.missing or facts.differs:
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
