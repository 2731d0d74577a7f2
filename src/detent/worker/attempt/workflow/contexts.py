"""Makes the context of an attempt at a workflow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from detent.declare.task import Task
from detent.model.records import Claimed
from detent.store.contract import Store
from detent.worker.attempt.event_sink import EventSink
from detent.worker.attempt.workflow.aio_context import AioWorkflowContext
from detent.worker.attempt.workflow.base_context import BaseWorkflowContext
from detent.worker.attempt.workflow.context import PlainWorkflowContext

if TYPE_CHECKING:
    from detent.app.detent import Detent

__all__ = ["context_of"]


def context_of(
    claimed: Claimed, task: Task[..., Any, Any], store: Store, sink: EventSink, app: Detent
) -> BaseWorkflowContext:
    """Return the context of an attempt at a workflow."""
    kind = AioWorkflowContext if task.is_async else PlainWorkflowContext
    return kind(claimed, task, store, sink, app.ids, app.settings, app.clock, app.find_task)
