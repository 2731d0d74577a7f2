"""Agents of pydantic-ai in workflows: each request to the model and each call of a tool is a recorded step.

@app.workflow
async def answer(ctx: AsyncWorkflowContext, question: str) -> str:
    found = await agent.run(question, capabilities=[Recorded(ctx)])
    return found.output
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NoReturn

from detent.declare.workflow_context import AsyncWorkflowContext
from detent.errors import WrongPlace
from detent.integrations.agent_steps import AgentSteps
from detent.integrations.missing import missing
from detent.model.backoff import Retry

try:
    from pydantic import TypeAdapter
    from pydantic_ai import ApprovalRequired, CallDeferred, ModelRetry
    from pydantic_ai.capabilities import AbstractCapability
    from pydantic_ai.exceptions import ToolFailed
    from pydantic_ai.messages import ModelMessage, ModelResponse, ToolReturn, ToolReturnContent
    from pydantic_ai.models import Model, ModelRequestParameters
    from pydantic_ai.models.wrapper import WrapperModel
    from pydantic_ai.settings import ModelSettings
    from pydantic_ai.tools import RunContext
    from pydantic_ai.toolsets import AbstractToolset, ToolsetTool, WrapperToolset
except ImportError as error:
    raise missing("detent.integrations.pydantic_ai", "pydantic-ai-slim") from error

__all__ = ["Recorded"]

_RESPONSE: TypeAdapter[ModelResponse] = TypeAdapter(ModelResponse)
_CONTENT: TypeAdapter[Any] = TypeAdapter(ToolReturnContent)
_RETURN: TypeAdapter[ToolReturn[Any]] = TypeAdapter(ToolReturn)


class Recorded(AbstractCapability[Any]):
    """Give it to `agent.run(..., capabilities=[Recorded(ctx)])` inside of an async workflow. After a crash or a retry
    the run continues: what is on record is not asked or called again.

    `model_retry` and `tool_retry` are the retries of one step; without them, the retry policy of the workflow counts. A
    tool may raise `ModelRetry`, `ToolFailed`, `ApprovalRequired` and `CallDeferred`; that is on record, too.
    """

    def __init__(
        self, ctx: AsyncWorkflowContext, *, model_retry: Retry | None = None, tool_retry: Retry | None = None
    ) -> None:
        self._steps = AgentSteps(ctx, model_retry, tool_retry)

    def get_wrapper_model(self, model: Model) -> Model | None:
        """Record the requests to the model."""
        return _RecordedModel(model, self._steps)

    def get_wrapper_toolset(self, toolset: AbstractToolset[Any]) -> AbstractToolset[Any] | None:
        """Record the calls of tools."""
        return _RecordedToolset(toolset, self._steps)

    def get_default_run_id(self) -> str | None:
        """Return an id that is the same in every attempt."""
        return str(self._steps.ctx.uuid(f"pydantic-ai {self._steps.run}"))

    def get_run_clock(self) -> Callable[[], datetime] | None:
        """Return the clock of the workflow."""
        return self._steps.ctx.now


class _RecordedModel(WrapperModel):
    def __init__(self, wrapped: Model, steps: AgentSteps) -> None:
        super().__init__(wrapped)
        self._steps = steps

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        async def ask() -> Any:
            answer = await self.wrapped.request(messages, model_settings, model_request_parameters)
            return _RESPONSE.dump_python(answer, mode="json")

        return _RESPONSE.validate_python(await self._steps.ctx.step(self._steps.model(), ask))

    def request_stream(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise WrongPlace("a streamed answer of a model", "in a workflow", "use agent.run, which records whole answers")


@dataclass
class _RecordedToolset(WrapperToolset[Any]):
    steps: AgentSteps

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        async def call() -> Any:
            try:
                found = await self.wrapped.call_tool(name, tool_args, ctx, tool)
            except (ModelRetry, ToolFailed) as told:
                return {type(told).__name__: told.message}
            except (ApprovalRequired, CallDeferred) as told:
                return {type(told).__name__: told.metadata}
            if isinstance(found, ToolReturn):
                return {"return": _RETURN.dump_python(found, mode="json")}
            return {"content": _CONTENT.dump_python(found, mode="json")}

        ((kind, value),) = (await self.steps.ctx.step(self.steps.tool(name, ctx.tool_call_id or ""), call)).items()
        match kind:
            case "ModelRetry":
                raise ModelRetry(value)
            case "ToolFailed":
                raise ToolFailed(value)
            case "ApprovalRequired":
                raise ApprovalRequired(value)
            case "CallDeferred":
                raise CallDeferred(value)
            case "return":
                return _RETURN.validate_python(value)
        return _CONTENT.validate_python(value)
