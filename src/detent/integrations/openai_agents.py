"""Agents of the OpenAI Agents SDK in workflows: each request to a model and each call of a function tool is a recorded
step.

    @app.workflow
    async def answer(ctx: AsyncWorkflowContext, question: str) -> str:
        found = await Runner.run(recorded(ctx, agent), question)
        return str(found.final_output)
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

from detent.declare.workflow_context import AsyncWorkflowContext
from detent.errors import InvalidInput, WrongPlace
from detent.integrations.agent_steps import AgentSteps
from detent.integrations.missing import missing
from detent.model.backoff import Retry

try:
    from agents import Agent, FunctionTool, Model, ModelProvider, ModelResponse, MultiProvider, Tool
    from agents.items import TResponseStreamEvent
    from agents.tool_context import ToolContext
    from pydantic import TypeAdapter
    from pydantic_core import to_jsonable_python
except ImportError as error:
    raise missing("detent.integrations.openai_agents", "openai-agents") from error

__all__ = ["recorded"]

_RESPONSE: TypeAdapter[ModelResponse] = TypeAdapter(ModelResponse)


def recorded(
    ctx: AsyncWorkflowContext,
    agent: Agent[Any],
    *,
    provider: ModelProvider | None = None,
    model_retry: Retry | None = None,
    tool_retry: Retry | None = None,
) -> Agent[Any]:
    """Return a copy of the agent, and of those that it may hand over to, for `Runner.run` inside of an async workflow.
    After a crash or a retry the run continues: what is on record is not asked or called again.

    `provider` finds models that are given by name; without it, those of OpenAI. `model_retry` and `tool_retry` are the
    retries of one step; without them, the retry policy of the workflow counts. Tools that run at the provider of the
    model belong to its answer. `InvalidInput` for MCP servers, for local tools that are no function tools, and for
    handoffs that are no agents.
    """
    steps = AgentSteps(ctx, model_retry, tool_retry)
    return _copy_of(agent, steps, provider or MultiProvider(), {})


def _copy_of(
    agent: Agent[Any], steps: AgentSteps, provider: ModelProvider, copies: dict[int, Agent[Any]]
) -> Agent[Any]:
    if id(agent) in copies:
        return copies[id(agent)]
    if agent.mcp_servers:
        raise InvalidInput("agent", f"MCP servers of {agent.name!r:.80}", "function tools, which can be recorded")
    model = agent.model if isinstance(agent.model, Model) else provider.get_model(agent.model)
    copy = agent.clone(model=_RecordedModel(model, steps), tools=[_tool(tool, steps) for tool in agent.tools])
    copies[id(agent)] = copy  # before its handoffs: agents may hand over to each other
    for other in agent.handoffs:
        if not isinstance(other, Agent):
            raise InvalidInput("agent", f"a handoff of {agent.name!r:.80} that is no agent", "agents as handoffs")
    copy.handoffs = [_copy_of(other, steps, provider, copies) for other in agent.handoffs if isinstance(other, Agent)]
    return copy


def _tool(tool: Tool, steps: AgentSteps) -> Tool:
    if not isinstance(tool, FunctionTool):
        if hasattr(tool, "executor") or hasattr(tool, "computer") or hasattr(tool, "editor"):
            raise InvalidInput("tool", f"{tool.name!r:.80}, which runs here and is no function tool", "function tools")
        return tool  # runs at the provider of the model
    invoke = tool.on_invoke_tool

    async def invoke_recorded(context: ToolContext[Any], arguments: str) -> Any:
        async def call() -> Any:
            return to_jsonable_python(await invoke(context, arguments), fallback=str)

        return await steps.ctx.step(steps.tool(tool.name, context.tool_call_id), call)

    return replace(tool, on_invoke_tool=invoke_recorded)


class _RecordedModel(Model):
    def __init__(self, wrapped: Model, steps: AgentSteps) -> None:
        self._wrapped = wrapped
        self._steps = steps

    async def close(self) -> None:
        await self._wrapped.close()

    async def get_response(self, *args: Any, **kwargs: Any) -> ModelResponse:
        async def ask() -> Any:
            return _RESPONSE.dump_python(await self._wrapped.get_response(*args, **kwargs), mode="json")

        return _RESPONSE.validate_python(await self._steps.ctx.step(self._steps.model(), ask))

    def stream_response(self, *args: Any, **kwargs: Any) -> AsyncIterator[TResponseStreamEvent]:
        raise WrongPlace("a streamed answer of a model", "in a workflow", "use Runner.run, which records whole answers")
