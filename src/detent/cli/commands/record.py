"""`detent record`, `detent verify`, `detent repair` and `detent identities`: the record and its database."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from detent.cli import output
from detent.cli.command import Command, Group, with_app
from detent.cli.failures import FAILED, OK
from detent.cli.options import option, page_options, reason_option, time_options, yes_option
from detent.cli.session import Session, redaction_of
from detent.model.records import RepairStep, Violation

if TYPE_CHECKING:
    from detent.app.detent import Detent

__all__ = ["identities", "record", "repair", "verify"]

record = Group(
    "record",
    help="Search the record of changes.",
    examples=("detent record search --actor ana --since 7d", "detent record search --entity job --id 17"),
)
identities = Group(
    "identities",
    help="Show and renew the identity of the database.\n\nIt is part of the effect key of every job.",
    examples=("detent identities list", "detent identities renew --reason 'restored from a backup'"),
)


@record.command()
@option("--actor", "Only changes by this actor.", "NAME")
@option("--entity", "Only changes of this kind: job, queue, schedule, batch_run, …", "KIND")
@option("--id", "Only changes of this entity; goes with --entity.", "ID", to="entity_id")
@time_options("changes")
@page_options
@with_app
def search(session: Session, app: Detent, **chosen: Any) -> None:
    """List changes that were requested, the newest first.

    By people or programs, with actor, time and reason: cancels, retries, pauses, forced transitions, changes of
    schedules and limits, transitions of runs. The ordinary steps of attempts are in `detent jobs get`.
    """
    if chosen["entity_id"] is not None and chosen["entity"] is None:
        raise click.UsageError("--id goes with --entity.")
    columns = {**output.columns("at", "actor", "entity", ("ID", "entity_id")), **output.TRANSITIONS}
    session.show_rows(
        redaction_of(app).listed(app.record.search(**chosen)), columns, empty=f"no changes to show in {app.store.name}"
    )


@record.command()
@with_app
def invariants(session: Session, app: Detent) -> None:
    """List the invariants that `detent verify` checks."""
    session.show_rows(app.record.invariants(), output.columns("name", "says"), empty="no invariants")


@click.command(cls=Command)
@with_app
def verify(session: Session, app: Detent) -> int:
    """Check every invariant of the record.

    Exit code 1 if one is violated; `detent repair` shows how to mend it.
    """
    found = _verify_with_bar(app)
    not_checked = app.store.pages_not_checked()
    if session.json:
        output.print_json(output.records(found))
    elif found:
        output.print_rows(found, output.columns("invariant", "entity", ("ID", "entity_id"), "detail"))
        output.print_note(f"{output.count_of(len(found), 'violation')}; `detent repair` shows how to mend them")
    else:
        output.print_text("healthy: no invariant is violated")
    if not_checked is not None:
        output.print_note(not_checked)
    return FAILED if found else OK


def _verify_with_bar(app: Detent) -> list[Violation]:
    """Check every invariant. On a terminal, show a progress bar, since many jobs take minutes."""
    if not sys.stderr.isatty():
        return app.record.verify()
    with click.progressbar(length=1, label="invariants", show_pos=True, file=sys.stderr) as bar:

        def show_left(left: int) -> None:
            bar.length = max(bar.length or 1, left)
            bar.update(bar.length - left - bar.pos)

        found = app.store.verify(show_left)
        bar.update((bar.length or 1) - bar.pos)
    return found


@click.command(cls=Command)
@yes_option
@reason_option
@click.pass_obj
def repair(session: Session, yes: bool, reason: str | None) -> int:
    """Bring the database back in line with its record.

    Prints the plan; with --yes carries it out, on record. Exit code 1 if something is left that needs a person.
    """
    if yes and not reason:
        raise click.UsageError("--yes needs --reason: a repair is on record with its reason.")
    with session.open() as app:
        plan = app.record.repair(reason=reason or "plan only")
        possible = sum(step.can for step in plan)
        apply = bool(possible) and (yes or (reason is not None and session.is_interactive))
        if apply and not yes:
            _show_plan(session, plan, applied=False)
            session.confirm(f"carry out {output.count_of(possible, 'step')}", yes=False)
        if apply:
            plan = app.record.repair(reason=reason or "", apply=True)
        _show_plan(session, plan, applied=apply)
    if possible and not apply:
        output.print_note("nothing was changed; add --yes --reason TEXT to carry it out")
    return FAILED if any(not step.can for step in plan) else OK


def _show_plan(session: Session, plan: Sequence[RepairStep], *, applied: bool) -> None:
    if session.json:
        output.print_json({"applied": applied, "steps": output.records(plan)})
        return
    verdicts = {True: "done" if applied else "would", False: "cannot"}
    verdict = ("", lambda step: verdicts[step.can])
    columns = output.columns(verdict, "entity", ("ID", "entity_id"), ("STEP", "does"), "invariant")
    output.print_rows(plan, columns, empty="nothing to repair")


@identities.command("list")
@with_app
def list_identities(session: Session, app: Detent) -> None:
    """List the identities that this database has had, the oldest first."""
    columns = output.columns("identity", ("JOBS FROM", "first_id"), ("CREATED", "made_at"), ("BY", "made_by"), "reason")
    empty = "this database has no identity; `detent identities renew` creates one"
    session.show_rows(app.identities.list(), columns, empty=empty)


@identities.command()
@with_app
def current(session: Session, app: Detent) -> None:
    """Print the identity of this database."""
    identity = app.identities.current()
    session.answer({"identity": identity}, identity)


@identities.command()
@reason_option
@with_app
def renew(session: Session, app: Detent, reason: str | None) -> None:
    """Give this database a new identity.

    Do so after a restore from a backup or into a copy. Existing jobs keep their effect keys; new jobs get keys that no
    other copy of this database gives. Stop the workers first: it is refused if a worker was seen in the last minute.
    """
    identity = app.identities.renew(reason=reason)
    session.answer({"identity": identity}, f"The new identity is {identity}.")
