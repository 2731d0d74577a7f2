"""The application of the notebook: a task, a workflow and a batch. DETENT_DATABASE_URL says where."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from detent import Change, Context, Detent, Fatal, Retry, WorkflowContext

app = Detent()
prices = {"ring": 100, "chain": 250, "watch": 900}


@app.task(name="welcome", retry=Retry(0))
async def welcome(ctx: Context, name: str) -> str:
    """Welcome a customer."""
    if not name:
        raise Fatal("a customer without a <name>")
    return f"hello {name}"


def load(sku: str) -> int:
    """Return the price of an item."""
    return prices[sku]


@app.workflow(name="sell")
def sell(ctx: WorkflowContext, sku: str) -> str:
    """Sell an item when the boss has agreed."""
    price = ctx.step("load", load, sku)
    return f"{sku} for {price}, agreed by {ctx.wait_for('agreed', str)}"


@app.batch(name="reprice")
@dataclass
class Reprice:
    """Raise all prices."""

    percent: int

    def targets(self) -> list[str]:
        """Return all items."""
        return sorted(prices)

    def preview(self, ref: str) -> Change[dict[str, Any]]:
        """Return the old and the new price."""
        before = {"sku": ref, "price": prices[ref]}
        return Change(before=before, after=before | {"price": prices[ref] * (100 + self.percent) // 100})

    def apply(self, ctx: Context, ref: str, change: Change[dict[str, Any]]) -> None:
        """Set the new price."""
        prices[ref] = change.after["price"]
