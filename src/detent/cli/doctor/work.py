"""Checks of the work: queues, dead jobs, workers and what they know, leases, alerts, schedules."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

from detent.cli import output
from detent.cli.doctor.finding import Finding, duration, first_of
from detent.errors import DetentError
from detent.model.ops_records import OPS_TASK
from detent.model.service_records import OldestReady, WorkerRow
from detent.model.terminal_text import line
from detent.views.job_explanation import explain

if TYPE_CHECKING:
    from detent.app.detent import Detent

__all__ = ["check_alerts", "check_leases", "check_queues", "check_schedules", "check_worker"]

_SEEN_WITHIN = 10.0
_READY_AGE_MAX = timedelta(hours=1)
_EXPIRED_MIN = 3
_EXPIRED_SHARE_MAX = 0.01


def check_worker(app: Detent, name: str) -> Finding:
    """Return whether the worker of this name is alive and takes jobs."""
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


def check_queues(app: Detent) -> Iterator[Finding]:
    """Yield how many jobs there are, and who takes them."""
    queues = app.queues.list()
    total: dict[str, int] = {}
    for queue in queues:
        for state, jobs in queue.jobs.items():
            total[state] = total.get(state, 0) + jobs
    yield Finding("jobs", "ok", ", ".join(f"{jobs} {state}" for state, jobs in total.items() if jobs) or "none")
    paused = [line(queue.name) for queue in queues if queue.paused]
    yield Finding("queues", "warn" if paused else "ok", _paused(paused) if paused else "none is paused")
    dead = total.get("quarantined", 0)
    yield Finding("dead jobs", "warn" if dead else "ok", f"{dead}; see `detent dead list`" if dead else "none")
    alive = app.store.worker_list(_SEEN_WITHIN)
    yield _workers(len(alive), total.get("pending", 0))
    ready = app.store.ready_oldest()
    if alive and ready:
        yield _takers(ready, alive)
    yield _oldest(app, ready)


def _paused(names: Sequence[str]) -> str:
    return f"paused: {', '.join(names)}; `detent queues resume` lets their jobs start again"


def _workers(alive: int, pending: int) -> Finding:
    if alive or not pending:
        return Finding("workers", "ok", f"{alive} alive; see `detent workers list`" if alive else "none is alive")
    waiting = f"none is alive, and {output.count_of(pending, 'job')} pending"
    return Finding("workers", "warn", f"{waiting}; start one with `detent worker`")


def _takers(ready: Sequence[OldestReady], alive: Sequence[WorkerRow]) -> Finding:
    """Return which tasks have ready jobs that no live worker takes. One that has just started knows no tasks yet."""
    if any(not worker.tasks for worker in alive):
        return Finding("tasks", "ok", "a worker is starting, and says which tasks it knows in a moment")
    left = [
        f"{line(one.task)} in queue {line(one.queue)} (job {one.job_id})"
        for one in ready
        if one.task != OPS_TASK and not any(_takes(worker, one) for worker in alive)
    ]
    if not left:
        return Finding("tasks", "ok", "a live worker takes each task that has a ready job")
    return Finding(
        "tasks", "warn", f"jobs are ready that no live worker takes: {first_of(left)}; start a worker for them"
    )


def _takes(worker: WorkerRow, ready: OldestReady) -> bool:
    serves = worker.queues is None or ready.queue in worker.queues
    return serves and ready.task in worker.tasks and not worker.stopping


def _oldest(app: Detent, ready: Sequence[OldestReady]) -> Finding:
    if not ready:
        return Finding("oldest ready", "ok", "none")
    oldest = min(ready, key=lambda one: one.ready_at)
    detail = f"job {oldest.job_id} in queue {line(oldest.queue)}, due {output.format_time(oldest.ready_at)}"
    age = app.store.now() - oldest.ready_at
    if age <= _READY_AGE_MAX:
        return Finding("oldest ready", "ok", detail)
    try:
        why = explain(app.store, oldest.job_id)
    except DetentError as error:  # it has been deleted meanwhile
        why = str(error)
    return Finding("oldest ready", "warn", f"{detail}, {duration(age.total_seconds())} ago: {line(why)}")


def check_leases(app: Detent) -> Finding:
    """Return whether attempts lose their leases more often than workers die."""
    attempts = app.figures().attempts
    expired = {one.task: one.attempts for one in attempts if one.outcome == "expired"}
    lost, total = sum(expired.values()), sum(one.attempts for one in attempts)
    if lost < _EXPIRED_MIN or lost < _EXPIRED_SHARE_MAX * total:
        return Finding("leases", "ok", f"{lost} lost in the last 24 h")
    tasks = [line(task) for task, _ in sorted(expired.items(), key=lambda item: -item[1])]
    found = f"{lost} of {output.count_of(total, 'attempt')} lost the lease in the last 24 h ({first_of(tasks)})"
    advice = "if no machine died, the lease is too short for it, or the machine is overloaded: see `--lease`"
    return Finding("leases", "warn", f"{found}; {advice}")


def check_alerts(app: Detent) -> Finding:
    """Return which alerts are firing."""
    firing = app.alerts.list(state="firing")
    if not firing:
        return Finding("alerts", "ok", "none is firing")
    return Finding("alerts", "warn", f"firing: {first_of([one.id for one in firing])}; see `detent alerts list`")


def check_schedules(app: Detent) -> Finding:
    """Return which schedules the code no longer has."""
    left = app.schedules.left()
    if left:
        found = f"the code no longer declares: {first_of(left)}"
        return Finding("schedules", "warn", f"{found}; `detent schedules prune` removes them")
    return Finding("schedules", "ok", f"{len(app.schedules.list())}; see `detent schedules list`")
