"""The requests of the shop."""

from __future__ import annotations

import json

from django.db import transaction
from django.http import Http404, HttpRequest, JsonResponse
from django.shortcuts import get_object_or_404
from django.views.decorators.csrf import csrf_exempt

from shop.models import Order
from shop.packing import pack_once
from shop.tasks import confirm

try:
    from django.tasks import default_task_backend
    from django.tasks.exceptions import TaskResultDoesNotExist
except ImportError:
    from django_tasks import default_task_backend
    from django_tasks.exceptions import TaskResultDoesNotExist


class SoldOut(Exception):
    """There is nothing left."""


@csrf_exempt
def place_order(request: HttpRequest) -> JsonResponse:
    """Write an order and its task in one transaction: both are there, or neither."""
    item = json.loads(request.body)["item"]
    try:
        with transaction.atomic():
            order = Order.objects.create(item=item)
            result = confirm.enqueue(order.id)
            pack_once(order.id)
            if item == "unicorn":
                raise SoldOut
    except SoldOut:
        return JsonResponse({"error": "sold out: the order and its task are rolled back"}, status=409)
    return JsonResponse({"order": order.id, "result": result.id}, status=201)


def show_order(request: HttpRequest, order_id: int) -> JsonResponse:
    """Return an order."""
    order = get_object_or_404(Order, id=order_id)
    return JsonResponse({"item": order.item, "state": order.state})


def show_result(request: HttpRequest, result_id: str) -> JsonResponse:
    """Return the state of a task, and what it returned."""
    try:
        result = default_task_backend.get_result(result_id)
    except TaskResultDoesNotExist as error:
        raise Http404(str(error)) from error
    value = result.return_value if result.is_finished and not result.errors else None
    return JsonResponse({"status": result.status, "attempts": result.attempts, "value": value})
