"""Four workflows. Run them with `detent worker workflows:app`; DETENT_DATABASE_URL says where.

Everything outside is a file in the directory of the worker: the bank, the carrier, the model, the mail.
"""

from __future__ import annotations

import asyncio
import os
from datetime import timedelta
from pathlib import Path

import msgspec

from detent import (
    AsyncWorkflowContext,
    Context,
    Detent,
    Fatal,
    Limit,
    Retry,
    Step,
    Throttled,
    Tx,
    WorkflowContext,
    errors,
)

app = Detent()


def tell(line: str) -> None:
    """Tell the world outside, durably."""
    with Path("outside.log").open("a") as outside:
        outside.write(f"{line}\n")


# -- an order, and its undo ------------------------------------------------------------------------------------


class Payment(msgspec.Struct):
    """What the bank answers."""

    number: str


@app.task(name="stock.prepare")
def prepare(ctx: Context) -> None:
    """Create the table of the stock."""
    with ctx.commit() as tx:
        tx.execute("CREATE TABLE IF NOT EXISTS stock (item TEXT NOT NULL, taken INTEGER NOT NULL)")


def reserve(tx: Tx, item: str) -> None:
    """Take one from the stock, in the transaction that records the step: exactly once."""
    tx.execute("INSERT INTO stock (item, taken) VALUES (:item, 1)", {"item": item})


def charge(item: str, key: str) -> Payment:
    """Charge the customer. The worker may die right after it, which the demo makes happen once."""
    tell(f"charged for {item}, key {key}")
    if Path("die").exists():
        Path("die").unlink()
        os._exit(9)
    return Payment(f"payment for {item}")


def refund(payment: Payment) -> None:
    """Give the money back."""
    tell(f"refunded {payment.number}")


def ship(item: str) -> str:
    """Send it, unless it is too large for every lorry."""
    if item == "piano":
        raise OSError("no lorry is large enough")
    tell(f"shipped {item}")
    return f"parcel with {item}"


@app.workflow(name="order", retry=Retry(2, base=0.1, cap=0.2))
def order(ctx: WorkflowContext, item: str) -> str:
    """Reserve, charge and ship. If shipping fails for good, the money goes back and the stock is free again."""

    def release(_: None) -> None:
        tell(f"released {item}")

    ctx.transact(Step("reserve", undo=release), reserve, item)
    key = str(ctx.uuid("payment"))
    ctx.step(Step("charge", undo=refund), charge, item, key)
    return ctx.step("ship", ship, item)


# -- an expense that a person approves -------------------------------------------------------------------------


class Decision(msgspec.Struct):
    """What the boss says."""

    approved: bool


@app.workflow(name="expense")
def expense(ctx: WorkflowContext, report: int) -> str:
    """Ask the boss by mail, with a link to answer; after three days ask the board. Meanwhile no worker is busy with it.
    The link of the boss does not answer for the board."""
    link = f"/hooks/signals/{ctx.token('decision', next_wait_only=True)}"
    ctx.step("ask", tell, f"mail to the boss about report {report}: {link}")
    ctx.set_status(asked="boss")
    try:
        decision = ctx.wait_for("decision", Decision, timeout=timedelta(days=3))
    except errors.WaitTimeout:
        link = f"/hooks/signals/{ctx.token('decision')}"
        ctx.step("escalate", tell, f"mail to the board about report {report}: {link}")
        decision = ctx.wait_for("decision", Decision)
    return "booked" if decision.approved else "refused"


# -- an agent that asks a model --------------------------------------------------------------------------------


class Answer(msgspec.Struct):
    """What the model says: a tool to use, or the end."""

    text: str
    final: bool


async def ask_model(task: str, log: list[str]) -> Answer:
    """A model that is overloaded at first, fails once, and then answers."""
    calls = Path("model.calls")
    with calls.open("a") as made:
        made.write("x")
    match calls.stat().st_size:
        case 1:
            raise Throttled(0.2)
        case 2:
            raise ConnectionError("the model hung up")
    return Answer(f"look up {task}", False) if len(log) < 2 else Answer(f"{task}: {', '.join(log)}", True)


async def use_tool(name: str, turn: int) -> str:
    """Use a tool; two run at the same time."""
    await asyncio.sleep(0.01)
    tell(f"tool {name}{turn}")
    return f"{name}{turn}"


@app.workflow(name="agent", retry=Retry(3, base=0.1, cap=0.2), limit=Limit(concurrency=5))
async def agent(ctx: AsyncWorkflowContext, task: str) -> str:
    """Think and act in turns. A crash repeats no turn that is on record."""
    log: list[str] = []
    for turn in range(10):
        step: Step[Answer] = Step("model", key=turn, retry=Retry(4, base=0.1, cap=0.2))
        answer = await ctx.step(step, ask_model, task, log)
        if answer.final:
            return answer.text
        tools = (ctx.step(Step("tool", key=f"{turn}{name}"), use_tool, name, turn) for name in ("a", "b"))
        log += await asyncio.gather(*tools)
    raise errors.DetentError("the agent found no answer")


# -- thumbnails: many children, one wake-up --------------------------------------------------------------------


@app.task(name="render", retry=Retry(3, base=0.1, cap=0.2))
async def render(ctx: Context, photo: int) -> int:
    """Render one photo; a few are damaged."""
    if photo % 40 == 39:
        raise Fatal(f"photo {photo} is damaged")  # no further attempt will help
    return photo


@app.workflow(name="thumbnails")
def thumbnails(ctx: WorkflowContext, photos: int) -> str:
    """Render them all. Five of a hundred may fail."""
    done = ctx.spawn_many("render", [render.call(photo=n) for n in range(photos)]).join(tolerate="5%")
    return f"{done.succeeded} rendered, {done.failed} damaged"
