"""The tasks of a pipeline, to be declared with it: plan, page, consolidate, and those that tell of a failure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from detent.client.colour import as_task
from detent.declare.pipeline import Pipeline
from detent.declare.task import Options, Task
from detent.pipeline.consolidating import Consolidating
from detent.pipeline.fetching import Fetching
from detent.pipeline.ground import Ground

__all__ = ["Declare", "PipelineTasks", "declare_tasks"]

AnyTask = Task[..., Any, Any]


class Declare(Protocol):
    """Whoever has tasks: the application."""

    def __call__(self, function: Callable[..., Any], name: str, aliases: tuple[str, ...], options: Options) -> AnyTask:
        """Declare a task."""
        ...


@dataclass(frozen=True, slots=True)
class PipelineTasks:
    """A pipeline with the task that begins its runs; the database enqueues the others."""

    pipeline: Pipeline
    plan: AnyTask


def declare_tasks(pipeline: Pipeline, ground: Ground, declare: Declare) -> PipelineTasks:
    """Declare them all."""
    fetching, consolidating = Fetching(pipeline, ground), Consolidating(pipeline, ground)
    asking, other = pipeline.options.for_pages(), pipeline.options.for_others()
    fetching.page_task = declare(as_task(fetching.page, fetching.page_colour), pipeline.task("page"), (), asking)
    for part, function in (
        ("consolidate", as_task(consolidating.consolidate, consolidating.colour)),
        ("skipped", consolidating.skipped),
        ("failed", consolidating.failed),
    ):
        declare(function, pipeline.task(part), (), other)
    plan = as_task(fetching.plan, fetching.plan_colour)
    return PipelineTasks(pipeline, declare(plan, pipeline.task("plan"), (), asking))
