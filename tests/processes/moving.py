"""An application whose workflows wait for each kind of thing while their database moves."""

from __future__ import annotations

from detent import Context, Detent
from detent.declare.workflow_context import WorkflowContext

__all__ = ["make_app"]


def make_app(url: str | None = None) -> Detent:
    """Return the application."""
    app = Detent(url)

    @app.task(name="node")
    def node(ctx: Context) -> str:
        return ctx.effect_key

    @app.workflow(name="approval")
    def approval(ctx: WorkflowContext) -> list[str]:
        """Waits for a signal, and says under which key it has charged."""
        charged = ctx.step("charge", lambda: ctx.effect_key)
        ctx.set_status(token=ctx.token("decision"), charged=charged)
        decision = ctx.wait_for("decision", str)
        return [charged, decision, ctx.step("book", lambda: ctx.effect_key)]

    @app.workflow(name="nap")
    def nap(ctx: WorkflowContext, seconds: float) -> str:
        ctx.step("lie down", lambda: None)
        ctx.sleep(seconds)
        return "awake"

    @app.workflow(name="family")
    def family(ctx: WorkflowContext) -> list[list[str]]:
        """Waits for two children, each of which waits for a signal."""
        group = ctx.spawn_many("children", [approval.call(), approval.call()])
        return list(group.join().results())

    return app


app = make_app()
