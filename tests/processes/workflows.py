"""An application of workflows. Its version is that of the environment: workers of two versions are two programs."""

from __future__ import annotations

import os
import time

from detent import Detent, Retry, Step
from detent.declare.workflow_context import WorkflowContext
from tests.processes.tasks import enter, hold, hold_interpreter

VERSION, SUPPORTS = "WORKFLOW_VERSION", "WORKFLOW_SUPPORTS"


def make_app(url: str | None = None) -> Detent:
    """Return the application."""
    app = Detent(url)
    version = int(os.environ.get(VERSION, "1"))
    supports = tuple(int(one) for one in os.environ.get(SUPPORTS, str(version)).split())

    @app.workflow(name="expense", version=version, supports=supports, queue="expenses", retry=Retry(100, base=0.05))
    def expense(ctx: WorkflowContext) -> str:
        ctx.step("ask", lambda: "asked")
        if ctx.version >= 2:
            ctx.step("audit", lambda: "audited")
        decision = ctx.wait_for("decision", str)
        return f"{decision} under {ctx.version}"

    @app.workflow(name="nap")
    def nap(ctx: WorkflowContext) -> None:
        ctx.sleep(3600)

    @app.workflow(name="stop", retry=Retry(100, base=0.05))
    def stop(ctx: WorkflowContext, gate: str) -> str:
        """The first attempt stops inside its step, later ones pass."""

        def charge() -> int:
            if ctx.attempt == 1:
                door = enter(gate)
                while not door.exists():
                    time.sleep(0.01)
            return ctx.attempt

        paid = ctx.step("charge", charge)
        return f"paid by attempt {paid}"

    @app.workflow(name="deaf", retry=Retry(100, base=0.05))
    def deaf(ctx: WorkflowContext, gate: str, seconds: int) -> None:
        """Its second step does not stop when it is told to; with `seconds`, it holds the interpreter as well."""
        ctx.step(Step("reserve", undo=str), str, "reserved")
        if seconds:
            ctx.step("ship", hold_interpreter, ctx, gate, seconds)
        else:
            ctx.step("ship", hold, ctx, gate)

    return app


app = make_app()
