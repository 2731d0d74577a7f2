"""A task with Detent's own API: it has a key, and its effect is committed exactly once."""

from __future__ import annotations

from detent import Context
from detent.integrations.django.application import app, client


@app.task(queue="orders")
def pack(ctx: Context, order_id: int) -> str:
    """Pack an order. The new state and the success of the job are one commit."""
    with ctx.commit() as tx:
        tx.execute("UPDATE shop_order SET state = 'packed' WHERE id = :id", {"id": order_id})
    return f"order {order_id} is packed"


def pack_once(order_id: int) -> None:
    """Enqueue it in the transaction of Django. The key makes sure that an order is packed once."""
    with client() as jobs:
        jobs.enqueue(pack.call(order_id), key=f"pack:{order_id}")
