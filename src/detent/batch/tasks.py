"""The tasks of a batch, to be declared with it: `<batch>.plan`, `.preview`, `.step`, `.apply`, `.revert`, `.stop` and
`.reconcile`.

Each has the batch's queue, priority and limit; apply and revert also its retries, its time-out and what is said about
repeating them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol

from detent.batch.applying import Applying, Stepping, Stopping
from detent.batch.ground import Ground, Runs
from detent.batch.planning import Planning
from detent.batch.reconciling import Reconciling
from detent.client.colour import as_task
from detent.declare.batch import Batch
from detent.declare.task import Options, Task

__all__ = ["BatchTasks", "Declare", "declare_tasks"]

AnyTask = Task[..., Any, Any]

_BEFORE_ALL = 32_767
"""The highest priority: the job that stops a run must not wait behind the jobs that it is to stop."""
_PATIENCE = 20
"""How often what touches nothing may die with its worker."""


class Declare(Protocol):
    """Whoever has tasks: the application."""

    def __call__(self, function: Callable[..., Any], name: str, aliases: tuple[str, ...], options: Options) -> AnyTask:
        """Declare a task."""
        ...


@dataclass(frozen=True, slots=True)
class BatchTasks:
    """A batch with its tasks; `revert` is None where it has no such method."""

    batch: Batch
    plan: AnyTask
    preview: AnyTask
    step: AnyTask
    apply: AnyTask
    revert: AnyTask | None
    stop: AnyTask
    reconcile: AnyTask


def declare_tasks(batch: Batch, ground: Ground, declare: Declare) -> BatchTasks:
    """Declare them all."""
    runs = Runs(batch, ground)
    planning = Planning(batch, ground, runs)
    stepping = Stepping(batch, ground, runs)
    patient = replace(batch.options.retry, retries=max(_PATIENCE, batch.options.retry.retries))

    def task(part: str, function: Callable[..., Any], *, limited: bool = True, **more: Any) -> AnyTask:
        aliases = tuple(f"{alias}.{part}" for alias in batch.aliases)
        if limited:
            options = batch.options.for_tasks(batch.name, **more)
        else:
            chosen = {"queue": batch.options.queue, "priority": batch.options.priority, **more}
            options = Options(**chosen)
        return declare(function, f"{batch.name}.{part}", aliases, options)

    def target_task(action: Literal["apply", "revert"]) -> AnyTask:
        applying = Applying(batch, ground, runs, stop, action)
        careful = not batch.options.idempotent
        probe = as_task(applying.probe, applying.probe_colour) if careful and batch.observes else None
        return task(
            action,
            as_task(applying.carry_out, applying.colour),
            timeout=batch.options.timeout,
            idempotent=batch.options.idempotent,
            probe=probe,
        )

    stop = task("stop", Stopping(ground, runs).stop, limited=False, retry=patient, priority=_BEFORE_ALL)
    planning.preview_task = task("preview", as_task(planning.preview, planning.preview_colour), retry=patient)
    stepping.apply_task = target_task("apply")
    stepping.revert_task = target_task("revert") if batch.reverts else None
    reconciling = Reconciling(batch, ground, runs)
    return BatchTasks(
        batch=batch,
        plan=task("plan", as_task(planning.plan, planning.plan_colour), retry=patient),
        preview=planning.preview_task,
        step=task("step", stepping.step, limited=False, retry=patient),
        apply=stepping.apply_task,
        revert=stepping.revert_task,
        stop=stop,
        reconcile=task("reconcile", as_task(reconciling.reconcile, reconciling.colour), retry=patient),
    )
