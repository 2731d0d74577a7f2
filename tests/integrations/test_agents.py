"""Agents in workflows: a crash at any point asks and calls nothing again that is on record."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest
from agents import Agent as OpenAIAgent
from agents import FunctionTool, Model, ModelResponse, Runner, Usage
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText
from pydantic_ai import Agent, ApprovalRequired, DeferredToolRequests, DeferredToolResults, RunContext, ToolReturn
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.messages import ModelMessage, TextPart, ToolCallPart
from pydantic_ai.messages import ModelResponse as PydanticResponse
from pydantic_ai.models.function import AgentInfo, FunctionModel

from detent import AsyncWorkflowContext, Detent, Retry
from detent.errors import InvalidInput, WrongPlace
from detent.integrations.openai_agents import recorded
from detent.integrations.pydantic_ai import Recorded
from detent.testing.harness import Harness


@pytest.fixture
def app(detent: Harness) -> Detent:
    return detent.app


class Talk:
    """A model that calls each tool once, then says what came of it."""

    def __init__(self, *tools: str) -> None:
        self.tools = tools
        self.count: Counter[str] = Counter()

    def think(self, messages: list[ModelMessage], info: AgentInfo) -> PydanticResponse:
        self.count["model"] += 1
        answered = sum(isinstance(message, PydanticResponse) for message in messages)
        if answered < len(self.tools):
            return PydanticResponse([ToolCallPart(self.tools[answered], {}, tool_call_id=f"call-{answered}")])
        parts = [part for message in messages for part in message.parts if part.part_kind == "tool-return"]
        return PydanticResponse([TextPart(" ".join(str(part.content) for part in parts))])


POINTS = ["called model:1.1", "recorded model:1.1", "called tool:1.1-fetch-call-0", "recorded tool:1.1-fetch-call-0"]


@pytest.mark.parametrize("at", POINTS)
def test_a_crash_repeats_only_what_is_not_on_record(detent: Harness, app: Detent, at: str) -> None:
    talk = Talk("fetch")
    agent = Agent(FunctionModel(talk.think))

    @agent.tool_plain
    def fetch() -> dict[str, int]:
        talk.count["fetch"] += 1
        return {"stones": 3}

    @app.workflow(name="ask")
    async def ask(ctx: AsyncWorkflowContext) -> str:
        return (await agent.run("how many?", capabilities=[Recorded(ctx)])).output

    job = ask.enqueue()
    detent.crash(job, at=at)
    asyncio.run(detent.awork(skip=True))
    assert (job.refresh().result, job.attempt) == ("{'stones': 3}", 2)
    again = {"called model:1.1": (3, 1), "called tool:1.1-fetch-call-0": (2, 2)}.get(at, (2, 1))
    assert (talk.count["model"], talk.count["fetch"]) == again


def test_what_a_tool_tells_the_model_is_on_record(detent: Harness, app: Detent) -> None:
    """A tool that has failed for the model, one that returns more than a value, and one that a person approves."""
    talk = Talk("broken", "rich", "pay")
    agent = Agent(FunctionModel(talk.think), output_type=[str, DeferredToolRequests])

    @agent.tool_plain
    def broken() -> str:
        talk.count["broken"] += 1
        raise ToolFailed("no such stone")

    @agent.tool_plain
    def rich() -> ToolReturn[str]:
        talk.count["rich"] += 1
        return ToolReturn("ruby", content="a red stone")

    @agent.tool
    def pay(ctx: RunContext[object]) -> str:
        talk.count["pay"] += 1
        if not ctx.tool_call_approved:
            raise ApprovalRequired(metadata={"price": 9})
        return "paid"

    @app.workflow(name="buy")
    async def buy(ctx: AsyncWorkflowContext) -> str:
        first = await agent.run("buy", capabilities=[Recorded(ctx)])
        assert isinstance(first.output, DeferredToolRequests)
        (call,) = first.output.approvals
        assert first.output.metadata[call.tool_call_id] == {"price": 9}
        approved = await ctx.wait_for("approved", bool)
        second = await agent.run(
            message_history=first.all_messages(),
            deferred_tool_results=DeferredToolResults(approvals={call.tool_call_id: approved}),
            capabilities=[Recorded(ctx)],
        )
        assert isinstance(second.output, str)
        return second.output

    job = buy.enqueue()
    asyncio.run(detent.awork())
    assert "for signal 'approved'" in job.why()
    job.signal("approved", True)
    asyncio.run(detent.awork())
    assert job.refresh().result == "no such stone ruby paid"
    assert talk.count == {"model": 4, "broken": 1, "rich": 1, "pay": 2}
    assert [step.path.partition("-")[0] for step in job.steps() if step.path.startswith("model")] == [
        *("model:1.1", "model:1.2", "model:1.3", "model:2.1")
    ]


def test_a_request_that_fails_has_retries_of_its_own(detent: Harness, app: Detent) -> None:
    calls = Counter[str]()

    def think(messages: list[ModelMessage], info: AgentInfo) -> PydanticResponse:
        calls["model"] += 1
        if calls["model"] < 3:
            raise ConnectionError("the model hung up")
        return PydanticResponse([TextPart("hello")])

    agent = Agent(FunctionModel(think))

    @app.workflow(name="ask", retry=Retry(0))
    async def ask(ctx: AsyncWorkflowContext) -> str:
        return (await agent.run("hi", capabilities=[Recorded(ctx, model_retry=Retry(3))])).output

    job = ask.enqueue()
    asyncio.run(detent.awork(skip=True))
    assert (job.refresh().result, calls["model"]) == ("hello", 3)


def test_streams_are_refused(detent: Harness, app: Detent) -> None:
    agent = Agent(FunctionModel(Talk().think))
    refused: list[str] = []

    @app.workflow(name="ask", retry=Retry(0))
    async def ask(ctx: AsyncWorkflowContext) -> None:
        try:
            async with agent.run_stream("hi", capabilities=[Recorded(ctx)]):
                pass
        except WrongPlace as error:
            refused.append(str(error))

    ask.enqueue()
    asyncio.run(detent.awork())
    assert len(refused) == 1
    assert "use agent.run" in refused[0]


class Caller(Model):
    """A model of the other library: calls the tool once, then says what came of it."""

    def __init__(self) -> None:
        self.count = 0

    async def get_response(self, *args: Any, **kwargs: Any) -> ModelResponse:
        self.count += 1
        said = kwargs.get("input", args[1] if len(args) > 1 else "")
        found = [one["output"] for one in said if isinstance(one, dict) and one.get("type") == "function_call_output"]
        text = ResponseOutputText(text=" ".join(found), type="output_text", annotations=[])
        message = ResponseOutputMessage(id="1", type="message", role="assistant", status="completed", content=[text])
        call = ResponseFunctionToolCall(type="function_call", name="fetch", call_id="call-0", arguments="{}")
        return ModelResponse(output=[message if found else call], usage=Usage(requests=1), response_id=None)

    def stream_response(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError


@pytest.mark.parametrize("at", POINTS)
def test_a_crash_of_the_other_kind_of_agent(
    detent: Harness, app: Detent, at: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_AGENTS_DISABLE_TRACING", "1")
    fetched: list[str] = []

    async def fetch(context: Any, arguments: str) -> str:
        fetched.append(arguments)
        return "3 stones"

    caller = Caller()
    tool = FunctionTool("fetch", "Count stones.", {"type": "object", "properties": {}}, fetch, strict_json_schema=False)
    agent: OpenAIAgent[Any] = OpenAIAgent(name="counter", model=caller, tools=[tool])

    @app.workflow(name="ask")
    async def ask(ctx: AsyncWorkflowContext) -> str:
        return str((await Runner.run(recorded(ctx, agent), "how many?")).final_output)

    job = ask.enqueue()
    detent.crash(job, at=at)
    asyncio.run(detent.awork(skip=True))
    assert (job.refresh().result, job.attempt) == ("3 stones", 2)
    again = {"called model:1.1": (3, 1), "called tool:1.1-fetch-call-0": (2, 2)}.get(at, (2, 1))
    assert (caller.count, len(fetched)) == again
    assert agent.model is caller  # the agent itself is left as it was


def test_what_cannot_be_recorded_is_refused(detent: Harness, app: Detent) -> None:
    class Server:
        name = "files"

    agent: OpenAIAgent[Any] = OpenAIAgent(name="counter", model=Caller())
    agent.mcp_servers = [Server()]  # type: ignore[list-item]
    refused: list[str] = []

    @app.workflow(name="ask")
    async def ask(ctx: AsyncWorkflowContext) -> None:
        try:
            recorded(ctx, agent)
        except InvalidInput as error:
            refused.append(str(error))

    ask.enqueue()
    asyncio.run(detent.awork())
    assert refused == ["agent: found MCP servers of 'counter'; allowed: function tools, which can be recorded"]
