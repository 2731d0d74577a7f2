"""`detent repair`: bring what differs from the record back to it."""

from __future__ import annotations

from collections.abc import Sequence

import click

from detent.cli import render
from detent.cli.acting import confirm
from detent.cli.command import Command, reason_option
from detent.cli.failures import FAILED, OK
from detent.cli.session import Session
from detent.model.records import RepairStep

__all__ = ["command"]


@click.command("repair", cls=Command)
@click.option("--yes", "-y", is_flag=True, help="Carry the plan out without asking.")
@reason_option
@click.pass_obj
def command(session: Session, yes: bool, reason: str | None) -> int:
    """Bring the database back to its record.

    Shows the plan; with --yes carries it out, on record. Exit code 1 where something is left that needs a person.
    """
    if yes and not reason:
        raise click.UsageError("--yes needs --reason: a repair is on record with both actor and reason.")
    with session.open() as app:
        plan = app.record.repair(reason=reason or "looking")
        possible = sum(step.can for step in plan)
        apply = bool(possible) and (yes or (reason is not None and session.asks))
        if apply and not yes:
            _show(session, plan, applied=False)
            confirm(session, f"carry out {possible} steps", yes=False)
        if apply:
            plan = app.record.repair(reason=reason or "", apply=True)
        _show(session, plan, applied=apply)
    if possible and not apply:
        render.note("nothing was changed; --yes --reason TEXT carries it out")
    return FAILED if any(not step.can for step in plan) else OK


def _show(session: Session, plan: Sequence[RepairStep], *, applied: bool) -> None:
    if session.json:
        render.json_value({"applied": applied, "steps": render.records(plan)})
        return
    words = {True: "done" if applied else "would", False: "cannot"}
    render.table(
        ["", "WHAT", "ID", "STEP", "INVARIANT"],
        [[words[step.can], step.entity, step.entity_id, step.does, step.invariant] for step in plan],
        empty="nothing to repair",
    )
