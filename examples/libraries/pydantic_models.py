"""Pydantic models as arguments and results: `python examples/libraries/pydantic_models.py`."""

from __future__ import annotations

import tempfile
from decimal import Decimal

from pydantic import BaseModel, Field

from detent import Context, Detent, WorkflowContext, errors
from detent.testing.harness import Harness

app = Detent("sqlite:///shop.db")


class Line(BaseModel):
    """One line of an order."""

    sku: str
    count: int = Field(default=1, gt=0)


class Order(BaseModel):
    """What the shop sends."""

    id: int
    lines: list[Line] = Field(min_length=1)


class Approval(BaseModel):
    """What the boss says."""

    by: str
    discount: Decimal = Field(default=Decimal(0), ge=0, lt=1)


class Receipt(BaseModel):
    """What the customer gets."""

    order_id: int
    total: Decimal
    approved_by: str = ""


@app.task(name="pack")
def pack(ctx: Context, order: Order) -> Receipt:
    """Pack an order."""
    return Receipt(order_id=order.id, total=Decimal("9.50") * sum(line.count for line in order.lines))


def price(order: Order) -> Receipt:
    """Compute what an order costs."""
    return Receipt(order_id=order.id, total=Decimal(100) * len(order.lines))


@app.workflow(name="sell")
def sell(ctx: WorkflowContext, order: Order) -> Receipt:
    """Price an order, and wait until it is approved. The step, the signal and the result are models."""
    receipt = ctx.step("price", price, order)
    approval = ctx.wait_for("approval", Approval)
    total = receipt.total * (1 - approval.discount)
    return receipt.model_copy(update={"total": total, "approved_by": approval.by})


def main() -> None:
    """Run both, on a temporary database."""
    order = Order(id=7, lines=[Line(sku="ring"), Line(sku="chain", count=2)])
    with tempfile.TemporaryDirectory(prefix="detent-models-") as directory:
        harness = Harness(f"sqlite:///{directory}/shop.db")
        harness.use(app)
        packed, sold = pack.enqueue(order), sell.enqueue(order)
        try:
            app.enqueue(pack.call({"id": 8, "lines": [{"sku": "ring", "count": 0}]}))  # type: ignore[arg-type]
        except errors.InvalidArguments as refusal:
            print(refusal)
        harness.work()
        sold.signal("approval", Approval(by="ana", discount=Decimal("0.1")))
        harness.work()
        print(repr(packed.refresh().result))
        print(repr(sold.refresh().result))
        harness.close()


if __name__ == "__main__":
    main()
