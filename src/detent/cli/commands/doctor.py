"""`detent doctor`: a list of checks, with one line for each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Literal

import click
from msgspec import Struct

from detent.cli import output
from detent.cli.command import Command
from detent.cli.failures import FAILED, OK
from detent.cli.options import option
from detent.cli.session import Session
from detent.errors import DetentError, SchemaDiffers, SchemaMissing, SchemaTooNew, SchemaTooOld, SchemaUnreleased
from detent.model.clock import SystemClock
from detent.views.database_move import condition

if TYPE_CHECKING:
    from detent.app.detent import Detent
    from detent.store.contract import Store

__all__ = ["doctor"]

_CLOCK_SKEW_MAX = timedelta(seconds=5)
_SEEN_WITHIN = 10.0
_PENDING_AGE_MAX = timedelta(hours=1)
_NAMED_MAX = 3


class Finding(Struct):
    """The result of one check."""

    check: str
    verdict: Literal["ok", "warn", "fail"]
    detail: str


@click.command(cls=Command)
@option("--worker", "Only check that the worker of this name is alive and takes jobs.", "NAME")
@click.pass_obj
def doctor(session: Session, worker: str | None) -> int:
    """Check the database, the record, queues, workers and alerts.

    Also the schema, clocks and schedules. Exit code 1 if a check fails. With --worker it is a quick health check of one
    worker.
    """
    with session.open_or_create() as app:
        found = list(_findings(app) if worker is None else [_worker(app, worker)])
    session.show_rows(found, output.columns(("", "verdict"), "check", ("FOUND", "detail")), empty="no checks")
    return FAILED if any(one.verdict == "fail" for one in found) else OK


def _worker(app: Detent, name: str) -> Finding:
    try:
        app.open_existing()
        found = [one for one in app.workers.list(within=_SEEN_WITHIN) if one.name == name]
    except DetentError as error:
        return Finding("worker", "fail", str(error))
    if not found:
        return Finding("worker", "fail", f"no worker {name} has been seen in the last {_SEEN_WITHIN:g} s")
    latest = max(found, key=lambda one: one.seen_at)
    if latest.stopping:
        return Finding("worker", "fail", f"{name} is stopping")
    return Finding("worker", "ok", f"{name} has {latest.running} of {latest.slots} slots busy")


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
    yield from _facts(app.store)
    yield from _moves(app.store)
    yield _clocks(app)
    yield _violations(app)
    yield from _queues(app)
    yield _alerts(app)
    yield _schedules(app)


def _facts(store: Store) -> Iterator[Finding]:
    facts = store.facts()
    yield _warn_if("database", f"{facts.kind} {facts.version} at {store.name}", facts.version_caution)
    yield Finding("schema", "ok", f"schema {facts.schema}, which this version of Detent can use")
    if facts.differs:
        found = f"installed parts differ from those of this version ({', '.join(facts.differs)})"
        yield Finding("functions", "warn", f"{found}; run `detent migrate`")
    settings = ", ".join(f"{name} = {value}" for name, value in facts.durability.items())
    yield _warn_if("durability", settings, facts.durability_caution)
    if (growth := store.log_growth()) is not None:
        size = f"the write-ahead log holds {growth.bytes / (1 << 20):.1f} MB"
        yield Finding("log", "warn", growth.message) if growth.is_long else Finding("log", "ok", size)


def _moves(store: Store) -> Iterator[Finding]:
    for row in store.database_moves():
        if row.is_closed:
            yield Finding("move", "fail", f"it takes no writes: {condition(row)}")


def _warn_if(check: str, detail: str, caution: str | None) -> Finding:
    return Finding(check, "ok", detail) if caution is None else Finding(check, "warn", f"{detail}: {caution}")


def _clocks(app: Detent) -> Finding:
    clock = SystemClock()
    before, there, after = clock.now(), app.store.now(), clock.now()
    # A slow answer is no skew: the database read its clock at some time between `before` and `after`.
    skew = max(before - there, there - after)
    if skew > _CLOCK_SKEW_MAX:
        return Finding("clock", "warn", f"this machine and the database are {skew.total_seconds():.1f} s apart")
    return Finding("clock", "ok", "this machine and the database agree")


def _violations(app: Detent) -> Finding:
    found = app.record.verify()
    if not found:
        return Finding("record", "ok", "no invariant is violated")
    names = ", ".join(sorted({one.invariant for one in found}))
    return Finding("record", "fail", f"{output.count_of(len(found), 'violation')} ({names}); see `detent verify`")


def _queues(app: Detent) -> Iterator[Finding]:
    queues = app.queues.list()
    total: dict[str, int] = {}
    for queue in queues:
        for state, jobs in queue.jobs.items():
            total[state] = total.get(state, 0) + jobs
    yield Finding("jobs", "ok", ", ".join(f"{jobs} {state}" for state, jobs in total.items() if jobs) or "none")
    paused = [queue.name for queue in queues if queue.paused]
    yield Finding("queues", "warn" if paused else "ok", f"paused: {', '.join(paused)}" if paused else "none is paused")
    dead = total.get("quarantined", 0)
    yield Finding("dead jobs", "warn" if dead else "ok", f"{dead}; see `detent dead list`" if dead else "none")
    yield _workers(app, total.get("pending", 0))
    yield _oldest_pending(app)


def _workers(app: Detent, pending: int) -> Finding:
    alive = len(app.workers.list(within=_SEEN_WITHIN))
    if alive or not pending:
        return Finding("workers", "ok", f"{alive} alive; see `detent workers list`" if alive else "none is alive")
    return Finding("workers", "warn", f"none is alive, and {output.count_of(pending, 'job')} pending")


def _alerts(app: Detent) -> Finding:
    firing = app.alerts.list(state="firing")
    if not firing:
        return Finding("alerts", "ok", "none is firing")
    return Finding("alerts", "warn", f"firing: {_first([one.id for one in firing])}; see `detent alerts list`")


def _schedules(app: Detent) -> Finding:
    left = app.schedules.left()
    if left:
        found = f"the code no longer declares: {_first(left)}"
        return Finding("schedules", "warn", f"{found}; `detent schedules prune` removes them")
    return Finding("schedules", "ok", f"{len(app.schedules.list())}; see `detent schedules list`")


def _first(names: Sequence[str]) -> str:
    """Return the first few names, and how many more there are."""
    more = f" and {len(names) - _NAMED_MAX} more" if len(names) > _NAMED_MAX else ""
    return ", ".join(names[:_NAMED_MAX]) + more


def _oldest_pending(app: Detent) -> Finding:
    jobs = app.jobs.list(state="pending", limit=1)
    if not jobs:
        return Finding("oldest pending", "ok", "none")
    job = jobs[0]
    overdue = app.store.now() - job.due_at
    detail = f"job {job.id}, due {output.format_time(job.due_at)}; see `detent jobs why {job.id}`"
    return Finding("oldest pending", "warn" if overdue > _PENDING_AGE_MAX else "ok", detail)
