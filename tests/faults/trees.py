"""An application whose workflow is a tree of three levels. Its branches spawn leaves until they are told to stop."""

from __future__ import annotations

from detent import Detent, Retry, Step, WorkflowContext

app = Detent()
PATIENT = Retry(100, base=1)
TWIGS = 25
"""Leaves that a branch spawns at a time."""


def reversible(ctx: WorkflowContext) -> None:
    """Two steps with an undo."""
    for word in ("a", "b"):
        ctx.step(Step(word, undo=str.upper), str.lower, word)


@app.workflow(name="trunk", queue="trunk", retry=PATIENT)
def trunk(ctx: WorkflowContext, branches: int, groups: int) -> None:
    """The root: its branches, and a child that belongs to no group."""
    reversible(ctx)
    ctx.spawn(beside.call(), detached=True)
    ctx.spawn_many("branches", (branch.call(groups=groups if n % 2 else 1) for n in range(branches))).join()


@app.workflow(name="branch", queue="branches", retry=PATIENT)
def branch(ctx: WorkflowContext, groups: int) -> None:
    """Spawn leaves, group after group. Half of the branches stop soon, and wait."""
    reversible(ctx)
    for n in range(groups):
        ctx.spawn_many(f"leaves {n}", [leaf.call(n=n) for n in range(TWIGS)])
    ctx.wait_for("never")


@app.workflow(name="leaf", queue="leaves", retry=PATIENT)
def leaf(ctx: WorkflowContext, n: int) -> None:
    """Wait; some have something to undo, and some have ended before the cancel comes."""
    if n % 5 == 0:
        reversible(ctx)
    if n % 5 != 1:
        ctx.wait_for("never")


@app.workflow(name="beside", queue="leaves", retry=PATIENT)
def beside(ctx: WorkflowContext) -> str:
    """The detached child: it outlives the tree."""
    return ctx.wait_for("go", str)
