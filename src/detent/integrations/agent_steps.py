"""Names of the steps of agents: the same in every attempt, and never the same twice."""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

from detent.declare.workflow import Step
from detent.declare.workflow_context import AsyncWorkflowContext
from detent.model.backoff import Retry

__all__ = ["AgentSteps"]

_RUNS: WeakKeyDictionary[Any, int] = WeakKeyDictionary()
"""How many agents have run so far in each attempt at a workflow."""


class AgentSteps:
    """The steps of one agent: `model:1.2` is the second request of the first agent, `tool:1.2-search-call_7` a tool
    that the model asked for in that answer."""

    def __init__(self, ctx: AsyncWorkflowContext, model_retry: Retry | None, tool_retry: Retry | None) -> None:
        self.ctx = ctx
        self._model_retry = model_retry
        self._tool_retry = tool_retry
        self._run = _RUNS[ctx] = _RUNS.get(ctx, 0) + 1
        self._requests = 0

    @property
    def run(self) -> int:
        """The number of this agent in the workflow, counted from 1."""
        return self._run

    def model(self) -> Step[Any]:
        """Return the step of the next request to the model."""
        self._requests += 1
        return Step("model", key=f"{self._run}.{self._requests}", retry=self._model_retry)

    def tool(self, name: str, call_id: str) -> Step[Any]:
        """Return the step of a call of a tool."""
        return Step("tool", key=f"{self._run}.{self._requests}-{name}-{call_id}"[:120], retry=self._tool_retry)
