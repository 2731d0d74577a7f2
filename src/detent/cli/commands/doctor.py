"""`detent doctor`: whether all is well, one line for each thing looked at."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import TYPE_CHECKING, Literal

import click
from msgspec import Struct

from detent.cli import render
from detent.cli.command import Command
from detent.cli.failures import FAILED, OK
from detent.cli.session import Session
from detent.errors import DetentError, SchemaDiffers, SchemaMissing, SchemaTooNew, SchemaTooOld, SchemaUnreleased
from detent.model.clock import SystemClock

if TYPE_CHECKING:
    from detent.app.detent import Detent
    from detent.store.contract import Store

__all__ = ["command"]

_CLOCKS_APART_MAX = timedelta(seconds=5)
_SEEN_WITHIN = 10.0
_PENDING_AGE_MAX = timedelta(hours=1)
_ALERTS_NAMED = 3


class Finding(Struct):
    """One thing that was looked at, and how it is."""

    check: str
    verdict: Literal["ok", "warn", "fail"]
    detail: str


@click.command("doctor", cls=Command)
@click.option("--worker", "name", metavar="NAME", help="Look only whether a worker of this name lives and takes jobs.")
@click.pass_obj
def command(session: Session, name: str | None) -> int:
    """Look at the database, its schema, the record and the queues. Exit code 1 where something is wrong.

    With --worker it is a health check for one worker: quick, and true to what the worker itself last said.
    """
    with session.open_or_new() as app:
        found = list(_examine(app) if name is None else [_worker(app, name)])
    if session.json:
        render.json_value(render.records(found))
    else:
        render.table(["", "CHECK", "FOUND"], [[one.verdict, one.check, one.detail] for one in found])
    return FAILED if any(one.verdict == "fail" for one in found) else OK


def _worker(app: Detent, name: str) -> Finding:
    try:
        app.store_as_found.ready(create=False)
        found = [one for one in app.workers.list(within=_SEEN_WITHIN) if one.name == name]
    except DetentError as error:
        return Finding("worker", "fail", str(error))
    if not found:
        return Finding("worker", "fail", f"no worker {name} has been seen in the last {_SEEN_WITHIN:g} s")
    latest = max(found, key=lambda one: one.seen_at)
    if latest.stopping:
        return Finding("worker", "fail", f"{name} is stopping")
    return Finding("worker", "ok", f"{name} has {latest.running} of {latest.slots} slots busy")


def _examine(app: Detent) -> Iterator[Finding]:
    """Each check stands on the one before it: without a database there is nothing else to look at."""
    try:
        store = app.store_as_found
        store.ready(create=False)
    except (SchemaDiffers, SchemaMissing, SchemaTooNew, SchemaTooOld, SchemaUnreleased) as error:
        yield Finding("schema", "fail", str(error))
        return
    except DetentError as error:
        yield Finding("database", "fail", str(error))
        return
    yield from _facts(store)
    yield _clocks(app)
    yield _violations(app)
    yield from _queues(app)
    yield _alerts(app)
    yield _schedules(app)


def _facts(store: Store) -> Iterator[Finding]:
    facts = store.facts()
    yield _cautious("database", f"{facts.kind} {facts.version} at {store.name}", facts.version_caution)
    yield Finding("schema", "ok", f"number {facts.schema}, and this version of Detent may work with it")
    if facts.differs:
        found = f"installed parts differ from those of this version ({', '.join(facts.differs)})"
        yield Finding("functions", "warn", f"{found}; run `detent migrate`")
    told = ", ".join(f"{name} = {value}" for name, value in facts.durability.items())
    yield _cautious("durability", told, facts.durability_caution)
    if (growth := store.log_growth()) is not None:
        yield (
            Finding("log", "warn", growth.message) if growth.is_long else Finding("log", "ok", _megabytes(growth.bytes))
        )


def _megabytes(size: int) -> str:
    return f"the write-ahead log holds {size / (1 << 20):.1f} MB"


def _cautious(check: str, told: str, caution: str | None) -> Finding:
    return Finding(check, "ok", told) if caution is None else Finding(check, "warn", f"{told}: {caution}")


def _clocks(app: Detent) -> Finding:
    clock = SystemClock()
    before, there, after = clock.now(), app.store.now(), clock.now()
    # An answer that was long on its way says nothing about the clocks.
    apart = max(before - there, there - after)
    if apart > _CLOCKS_APART_MAX:
        return Finding("clock", "warn", f"this machine and the database are {apart.total_seconds():.1f} s apart")
    return Finding("clock", "ok", "this machine and the database agree")


def _violations(app: Detent) -> Finding:
    found = app.record.verify()
    if not found:
        return Finding("record", "ok", "no invariant is violated")
    names = ", ".join(sorted({one.invariant for one in found}))
    return Finding("record", "fail", f"{len(found)} violations ({names}); see `detent verify`")


def _queues(app: Detent) -> Iterator[Finding]:
    queues = app.queues.list()
    total: dict[str, int] = {}
    for queue in queues:
        for state, jobs in queue.jobs.items():
            total[state] = total.get(state, 0) + jobs
    told = ", ".join(f"{jobs} {state}" for state, jobs in total.items() if jobs)
    yield Finding("jobs", "ok", told or "none")
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
    return Finding("workers", "warn", f"none is alive, and {pending} jobs are pending")


def _alerts(app: Detent) -> Finding:
    firing = app.alerts.list(state="firing")
    if not firing:
        return Finding("alerts", "ok", "none fires")
    named = ", ".join(one.id for one in firing[:_ALERTS_NAMED])
    more = f" and {len(firing) - _ALERTS_NAMED} more" if len(firing) > _ALERTS_NAMED else ""
    return Finding("alerts", "warn", f"firing: {named}{more}; see `detent alerts list`")


def _schedules(app: Detent) -> Finding:
    left = app.schedules.left()
    if left:
        found = f"the code no longer declares: {', '.join(left[:_ALERTS_NAMED])}"
        more = f" and {len(left) - _ALERTS_NAMED} more" if len(left) > _ALERTS_NAMED else ""
        return Finding("schedules", "warn", f"{found}{more}; `detent schedules prune` removes them")
    return Finding("schedules", "ok", f"{len(app.schedules.list())}; see `detent schedules list`")


def _oldest_pending(app: Detent) -> Finding:
    jobs = app.jobs.list(state="pending", limit=1)
    if not jobs:
        return Finding("oldest pending", "ok", "none")
    job = jobs[0]
    overdue = app.store.now() - job.due_at
    detail = f"job {job.id}, due {render.when(job.due_at)}; see `detent jobs why {job.id}`"
    return Finding("oldest pending", "warn" if overdue > _PENDING_AGE_MAX else "ok", detail)
