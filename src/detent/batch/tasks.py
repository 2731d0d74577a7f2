"""The tasks that are declared with a batch: `<batch>.plan`, `.preview`, `.step`, `.apply`, `.revert`, `.stop` and
`.reconcile`.

Each has the queue, priority and limit of the batch; apply and revert also have its retries, time-out and `idempotent`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

from detent.batch.applier import Applier, Stepper
from detent.batch.planner import Planner
from detent.batch.reconciler import Reconciler
from detent.batch.run_jobs import RunCache
from detent.batch.stopper import STOP_PRIORITY, Stopper
from detent.client.engine import EngineRef
from detent.client.method_caller import as_task
from detent.declare.batch import Batch
from detent.declare.task import AnyTask, Options, TaskDeclarer

__all__ = ["BatchTasks", "declare_tasks"]

_CRASH_RETRIES = 20
"""Retries of jobs without an effect: they may be repeated after any crash of a worker."""


@dataclass(frozen=True, slots=True)
class BatchTasks:
    """A batch with its tasks; `revert` is None if the batch has no such method."""

    batch: Batch
    plan: AnyTask
    preview: AnyTask
    step: AnyTask
    apply: AnyTask
    revert: AnyTask | None
    stop: AnyTask
    reconcile: AnyTask


def declare_tasks(batch: Batch, engine: EngineRef, declare: TaskDeclarer) -> BatchTasks:
    """Declare all tasks of a batch."""
    runs = RunCache(batch, engine)
    planner = Planner(batch, engine, runs)
    stepper = Stepper(batch, engine, runs)
    repeatable = replace(batch.options.retry, retries=max(_CRASH_RETRIES, batch.options.retry.retries))

    def task(part: str, function: Callable[..., Any], *, limited: bool = True, **more: Any) -> AnyTask:
        aliases = tuple(f"{alias}.{part}" for alias in batch.aliases)
        if limited:
            options = batch.options.for_tasks(batch.name, **more)
        else:
            chosen = {"queue": batch.options.queue, "priority": batch.options.priority, **more}
            options = Options(**chosen)
        return declare(function, f"{batch.name}.{part}", aliases, options)

    def target_task(action: Literal["apply", "revert"]) -> AnyTask:
        applier = Applier(batch, engine, runs, stop, action)
        careful = not batch.options.idempotent
        probe = as_task(applier.probe, applier.probe_caller) if careful and batch.observes else None
        return task(
            action,
            as_task(applier.carry_out, applier.caller),
            timeout=batch.options.timeout,
            idempotent=batch.options.idempotent,
            probe=probe,
        )

    stop = task("stop", Stopper(engine, runs).stop, limited=False, retry=repeatable, priority=STOP_PRIORITY)
    planner.preview_task = task("preview", as_task(planner.preview, planner.preview_caller), retry=repeatable)
    stepper.apply_task = target_task("apply")
    stepper.revert_task = target_task("revert") if batch.reverts else None
    reconciler = Reconciler(batch, engine, runs)
    return BatchTasks(
        batch=batch,
        plan=task("plan", as_task(planner.plan, planner.plan_caller), retry=repeatable),
        preview=planner.preview_task,
        step=task("step", stepper.step, limited=False, retry=repeatable),
        apply=stepper.apply_task,
        revert=stepper.revert_task,
        stop=stop,
        reconcile=task("reconcile", as_task(reconciler.reconcile, reconciler.caller), retry=repeatable),
    )
