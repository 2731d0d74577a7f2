"""An agent of the OpenAI Agents SDK in a workflow: `python examples/libraries/openai_agent.py`. The model is local."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import AsyncIterator
from typing import Any

from agents import Agent, Model, ModelResponse, Runner, Usage, function_tool, set_tracing_disabled
from agents.items import TResponseStreamEvent
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

from detent import AsyncWorkflowContext, Detent
from detent.integrations.openai_agents import recorded
from detent.testing.harness import Harness

set_tracing_disabled(True)  # or every run is sent to OpenAI
app = Detent("sqlite:///shop.db")
asked: list[str] = []
looked_up: list[str] = []


class LocalModel(Model):
    """Stands in for a model: looks up two stones at a time, hands over to the seller, who answers."""

    def __init__(self, name: str) -> None:
        self.name = name

    async def get_response(self, *args: Any, **kwargs: Any) -> ModelResponse:
        """Answer by what was said so far."""
        asked.append(self.name)
        said = kwargs.get("input", args[1] if len(args) > 1 else "")
        found = [one["output"] for one in said if isinstance(one, dict) and one.get("type") == "function_call_output"]
        if self.name == "seller":
            text = ResponseOutputText(text=" and ".join(found[:2]), type="output_text", annotations=[])
            return answer(
                ResponseOutputMessage(id="m1", type="message", role="assistant", status="completed", content=[text])
            )
        if not found:
            return answer(*(call("look_up", name, {"name": name}) for name in ("ruby", "opal")))
        return answer(call("transfer_to_seller", "seller", {}))

    def stream_response(self, *args: Any, **kwargs: Any) -> AsyncIterator[TResponseStreamEvent]:
        """Not needed here."""
        raise NotImplementedError


def call(tool: str, call_id: str, arguments: dict[str, str]) -> ResponseFunctionToolCall:
    """Return a request to call a tool."""
    return ResponseFunctionToolCall(type="function_call", name=tool, call_id=call_id, arguments=json.dumps(arguments))


def answer(*output: Any) -> ModelResponse:
    """Return an answer of the model."""
    return ModelResponse(output=list(output), usage=Usage(requests=1), response_id=None)


@function_tool
async def look_up(name: str) -> str:
    """Look up a stone."""
    looked_up.append(name)
    return f"{name}: {len(name)} carat"


seller: Agent[Any] = Agent(name="seller", model=LocalModel("seller"))
finder: Agent[Any] = Agent(name="finder", model=LocalModel("finder"), tools=[look_up], handoffs=[seller])


@app.workflow(name="advise")
async def advise(ctx: AsyncWorkflowContext, question: str) -> str:
    """Let the agents answer."""
    found = await Runner.run(recorded(ctx, finder), question)
    return str(found.final_output)


def main() -> None:
    """Run it on a temporary database. Its worker dies when the second answer of the model is on record."""
    with tempfile.TemporaryDirectory(prefix="detent-agent-") as directory:
        harness = Harness(f"sqlite:///{directory}/shop.db")
        harness.use(app)
        job = advise.enqueue("Which stones have you got?")
        harness.crash(job, at="recorded model:1.2")
        asyncio.run(harness.awork(skip=True))
        print(f"attempt {job.refresh().attempt}: {job.result}")
        print(f"asked: {', '.join(asked)}; looked up: {', '.join(sorted(looked_up))}")
        print(f"steps: {', '.join(sorted(step.path for step in job.steps()))}")
        harness.close()


if __name__ == "__main__":
    main()
