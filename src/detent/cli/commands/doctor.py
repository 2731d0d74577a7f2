"""`detent doctor`: a list of checks, with one line for each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from detent.cli import output
from detent.cli.command import Command
from detent.cli.doctor.database import check_clock, check_facts, check_moves, check_record, check_space
from detent.cli.doctor.finding import Finding
from detent.cli.doctor.work import check_alerts, check_leases, check_queues, check_schedules, check_worker
from detent.cli.failures import FAILED, OK
from detent.cli.options import option
from detent.cli.session import Session
from detent.errors import DetentError, SchemaDiffers, SchemaMissing, SchemaTooNew, SchemaTooOld, SchemaUnreleased

if TYPE_CHECKING:
    from detent.app.detent import Detent

__all__ = ["doctor"]


@click.command(cls=Command)
@option("--worker", "Only check that the worker of this name is alive and takes jobs.", "NAME")
@click.pass_obj
def doctor(session: Session, worker: str | None) -> int:
    """Check the database, disk, record, queues, workers and alerts.

    Also the schema, clocks, leases and schedules. Each line says what was found and what to do. Exit code 1 if a check
    fails. With --worker it is a quick health check of one worker.
    """
    with session.open_or_create() as app:
        found = list(_findings(app) if worker is None else [check_worker(app, worker)])
    session.show_rows(found, output.columns(("", "verdict"), "check", ("FOUND", "detail")), empty="no checks")
    return FAILED if any(one.verdict == "fail" for one in found) else OK


def _findings(app: Detent) -> Iterator[Finding]:
    """Yield the result of each check. If the database or its schema cannot be used, there are no further checks."""
    try:
        app.open_existing()
    except (SchemaDiffers, SchemaMissing, SchemaTooNew, SchemaTooOld, SchemaUnreleased) as error:
        yield Finding("schema", "fail", str(error))
        return
    except DetentError as error:
        yield Finding("database", "fail", str(error))
        return
    yield from check_facts(app.store)
    yield from check_space(app.store.space())
    yield from check_moves(app.store)
    yield check_clock(app)
    yield check_record(app)
    yield from check_queues(app)
    yield check_leases(app)
    yield check_alerts(app)
    yield check_schedules(app)
