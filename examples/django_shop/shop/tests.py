"""Tests of the shop: what a `TestCase` enqueues is rolled back with its transaction."""

from __future__ import annotations

from django.test import TestCase

from shop.models import Order
from shop.tasks import confirm


class Orders(TestCase):
    """A placed order enqueues its task, and the task confirms it."""

    def test_an_order_enqueues_its_task(self) -> None:
        placed = self.client.post("/orders", {"item": "lamp"}, content_type="application/json").json()
        result = confirm.get_result(placed["result"])
        assert (result.args, result.status) == ([placed["order"]], "READY")

    def test_the_task_confirms_its_order(self) -> None:
        order = Order.objects.create(item="lamp")
        count = confirm.func(type("Context", (), {"attempt": 1}), order.id)  # the function itself, without a worker
        order.refresh_from_db()
        assert (order.state, count) == ("confirmed", f"order {order.id} is confirmed, attempt 1")
