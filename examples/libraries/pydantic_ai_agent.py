"""An agent of pydantic-ai in a workflow: `python examples/libraries/pydantic_ai_agent.py`. The model is a function."""

from __future__ import annotations

import asyncio
import tempfile

from pydantic import BaseModel
from pydantic_ai import Agent, ModelRetry
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from detent import AsyncWorkflowContext, Detent
from detent.integrations.pydantic_ai import Recorded
from detent.testing.harness import Harness

app = Detent("sqlite:///shop.db")
asked: list[int] = []
looked_up: list[str] = []


class Stone(BaseModel):
    """What the catalogue knows of a stone."""

    name: str
    carat: float


def think(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """Stand in for a model: ask for two stones at a time, and for one with a wrong name; then answer."""
    asked.append(len(messages))
    returned = [part for message in messages for part in message.parts if isinstance(part, ToolReturnPart)]
    if len(messages) == 1:
        return ModelResponse([ToolCallPart("look_up", {"name": name}) for name in ("ruby", "opal")])
    if len(returned) == 2 and len(messages) == 3:
        return ModelResponse([ToolCallPart("look_up", {"name": "glass"})])
    return ModelResponse([TextPart(", ".join(part.model_response_str() for part in returned))])


agent = Agent(FunctionModel(think))


@agent.tool_plain
async def look_up(name: str) -> Stone:
    """Look up a stone."""
    looked_up.append(name)
    if name == "glass":
        raise ModelRetry("this is no stone")
    return Stone(name=name, carat=len(name))


@app.workflow(name="advise")
async def advise(ctx: AsyncWorkflowContext, question: str) -> str:
    """Let the agent answer."""
    found = await agent.run(question, capabilities=[Recorded(ctx)])
    return found.output


def main() -> None:
    """Run it on a temporary database. Its worker dies when the second answer of the model is on record."""
    with tempfile.TemporaryDirectory(prefix="detent-agent-") as directory:
        harness = Harness(f"sqlite:///{directory}/shop.db")
        harness.use(app)
        job = advise.enqueue("Which stones have you got?")
        harness.crash(job, at="recorded model:1.2")
        asyncio.run(harness.awork(skip=True))
        print(f"attempt {job.refresh().attempt}: {job.result}")
        print(f"the model was asked {len(asked)} times; looked up: {', '.join(sorted(looked_up))}")
        print(f"steps: {', '.join(sorted(step.path.partition('-pyd_')[0] for step in job.steps()))}")
        harness.close()


if __name__ == "__main__":
    main()
