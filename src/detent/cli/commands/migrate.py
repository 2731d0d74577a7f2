"""`detent migrate`: bring the schema of a database up to date."""

from __future__ import annotations

from typing import Literal

import click

from detent.cli import output
from detent.cli.command import Command
from detent.cli.failures import FAILED, OK
from detent.cli.options import flag
from detent.cli.session import Session

__all__ = ["migrate"]

_UP_TO_DATE = "the schema is up to date"


@click.command(cls=Command)
@click.option("--check", "mode", flag_value="check", help="Only print what is missing or differs. Exit code 1 if any.")
@click.option("--print", "mode", flag_value="print", help="Only print the SQL that would be run.")
@flag("--roles", "Also create the group roles for logins. PostgreSQL only.")
@click.pass_obj
def migrate(session: Session, mode: Literal["check", "print"] | None, roles: bool) -> int:
    """Bring the schema up to date.

    Applies missing migrations, and installs the functions, triggers and views of this release. With --app, also
    installs the guards of its attached tables, and writes the schedules and limits that its code declares.

    Jobs can run meanwhile: every step waits for a lock only for a moment and is tried again. If it is interrupted,
    run it again: it continues. An older release refuses to migrate a database that a newer one has migrated.

    The roles are detent_viewer, detent_client, detent_worker and detent_admin; each includes those before it.
    """
    if mode and roles:
        raise click.UsageError("--roles changes the database, --check and --print do not: choose one of them.")
    match mode:
        case "check":
            return _check(session)
        case "print":
            return _print(session)
        case None:
            return _migrate(session, roles=roles)


def _migrate(session: Session, *, roles: bool) -> int:
    def progress(name: str) -> None:
        if not session.json:
            output.print_text(f"applied {name}")

    with session.open_or_create() as app:
        applied = app.migrate(progress)
        if roles:
            app.store.install_roles()
    if session.json:
        output.print_json({"applied": applied, "roles": roles})
        return OK
    if not applied:
        output.print_note(_UP_TO_DATE)
    if roles:
        output.print_note("the roles exist; give them to logins, as in GRANT detent_worker TO shop")
    return OK


def _check(session: Session) -> int:
    with session.open_or_create() as app:
        facts = app.store_as_found.facts()
        # Raises what `migrate` would refuse: a newer release, an unreleased one, a gap in the list of migrations.
        app.store_as_found.migration_sql()
    if session.json:
        output.print_json({"schema": facts.schema, "missing": facts.missing, "differs": facts.differs})
    else:
        for name in facts.missing:
            output.print_text(f"missing {name}")
        for name in facts.differs:
            output.print_text(f"differs {name}")
    if facts.missing or facts.differs:
        return FAILED
    output.print_note(_UP_TO_DATE)
    return OK


def _print(session: Session) -> int:
    with session.open_or_create() as app:
        script = app.store_as_found.migration_sql()
    if script or session.json:
        session.answer({"sql": script}, script.rstrip("\n"))
    if not script:
        output.print_note(_UP_TO_DATE)
    return OK
