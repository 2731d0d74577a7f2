"""The tasks of the shop. Workers import this module by itself, as they do for every installed app."""

from __future__ import annotations

from typing import Any

try:
    from django.tasks import task  # since Django 6
except ImportError:
    from django_tasks import task

from shop.models import Order
from shop.packing import pack as pack  # so that workers know it


@task(queue_name="mail", takes_context=True)
def confirm(context: Any, order_id: int) -> str:
    """Confirm an order."""
    Order.objects.filter(id=order_id, state="placed").update(state="confirmed")
    return f"order {order_id} is confirmed, attempt {context.attempt}"


@task(priority=10)
async def count_orders() -> int:
    """Count the orders, on the event loop of the worker."""
    return await Order.objects.acount()


@task
def refund(order_id: int) -> None:
    """Fail: the example has no bank."""
    raise ValueError(f"no bank for order {order_id}")
