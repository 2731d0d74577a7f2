"""`detent operations`: list, examine, cancel and wait for bulk operations on jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from detent.cli import output
from detent.cli.command import Group, with_app
from detent.cli.job_actions import show_operation
from detent.cli.options import option, page_options, reason_option, timeout_option
from detent.cli.session import Session

if TYPE_CHECKING:
    from detent.app.detent import Detent

__all__ = ["operations"]

operations = Group(
    "operations",
    help="""List, examine, cancel and wait for operations.

    An operation is what `detent jobs retry`, `cancel`, `discard` or `move` starts with a filter.
    """,
    examples=("detent operations list", "detent operations cancel 17"),
)
operation_id_argument = click.argument("operation_id", metavar="ID")


@operations.command("list")
@option("--state", "Only operations in this state.", ["running", "done", "cancelled"])
@page_options
@with_app
def list_(session: Session, app: Detent, state: str | None, limit: int, after: str | None) -> None:
    """List operations, the newest first."""
    found = app.operations.list(state=state, limit=limit, after=after)
    counts = (("EXAMINED", "looked"), "changed", "refused")
    columns = output.columns("id", "action", "state", *counts, ("BY", "actor"), "created_at", "finished_at", "reason")
    session.show_rows(found.each(lambda one: one.row), columns, empty="no operations")


@operations.command()
@operation_id_argument
@with_app
def get(session: Session, app: Detent, operation_id: str) -> None:
    """Show an operation and how many jobs it has changed."""
    show_operation(session, app.operations.get(operation_id))


@operations.command()
@operation_id_argument
@reason_option
@with_app
def cancel(session: Session, app: Detent, operation_id: str, reason: str | None) -> None:
    """Stop an operation. Jobs that it has changed stay changed."""
    operation = app.operations.get(operation_id)
    operation.cancel(reason=reason)
    show_operation(session, operation)


@operations.command()
@operation_id_argument
@timeout_option
@with_app
def wait(session: Session, app: Detent, operation_id: str, timeout: float | None) -> None:
    """Carry out an operation until it has ended. Workers do the same by themselves."""
    show_operation(session, app.operations.get(operation_id).wait(timeout))
