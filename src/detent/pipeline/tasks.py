"""The tasks that are declared with a pipeline: plan, page, consolidate, and those that raise alerts."""

from __future__ import annotations

from dataclasses import dataclass

from detent.client.engine import EngineRef
from detent.client.method_caller import as_task
from detent.declare.pipeline import Pipeline
from detent.declare.task import AnyTask, TaskDeclarer
from detent.pipeline.consolidator import Consolidator
from detent.pipeline.fetcher import Fetcher

__all__ = ["PipelineTasks", "declare_tasks"]


@dataclass(frozen=True, slots=True)
class PipelineTasks:
    """A pipeline with the task that begins its runs. The database enqueues the jobs of the other tasks."""

    pipeline: Pipeline
    plan: AnyTask


def declare_tasks(pipeline: Pipeline, engine: EngineRef, declare: TaskDeclarer) -> PipelineTasks:
    """Declare all tasks of a pipeline."""
    fetcher, consolidator = Fetcher(pipeline, engine), Consolidator(pipeline, engine)
    asking, other = pipeline.options.for_pages(), pipeline.options.for_others()
    fetcher.page_task = declare(as_task(fetcher.page, fetcher.page_caller), pipeline.task("page"), (), asking)
    for part, function in (
        ("consolidate", as_task(consolidator.consolidate, consolidator.caller)),
        ("skipped", consolidator.skipped),
        ("failed", consolidator.failed),
    ):
        declare(function, pipeline.task(part), (), other)
    plan = as_task(fetcher.plan, fetcher.plan_caller)
    return PipelineTasks(pipeline, declare(plan, pipeline.task("plan"), (), asking))
