"""Three deploys of one workflow: its first version, a second one that cannot continue the first, and one that can."""

from __future__ import annotations

from detent import Detent, Retry
from detent.declare.workflow_context import WorkflowContext


def say(word: str) -> str:
    return word


def trip(ctx: WorkflowContext) -> str:
    ctx.step("book", say, "booked")
    if ctx.version >= 2:
        ctx.step("insure", say, "insured")
    ctx.wait_for("go")
    return ctx.step("leave", say, f"left under version {ctx.version}")


def deployed(version: int, *supports: int) -> Detent:
    app = Detent()
    app.workflow(name="trip", version=version, supports=supports, retry=Retry(1))(trip)
    return app


first = deployed(1, 1)
second = deployed(2, 2)
both = deployed(2, 1, 2)
