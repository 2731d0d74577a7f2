"""Cases for Django's test runner; test_backend.py starts it. They use the tasks of the example `django_shop`."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from unittest import skipIf

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db import connection, transaction
from django.test import TestCase, TransactionTestCase, override_settings
from django.utils import timezone
from django_tasks import TaskResultStatus, default_task_backend, task_backends
from django_tasks.exceptions import InvalidTaskError, TaskResultDoesNotExist, TaskResultMismatch
from django_tasks.signals import task_enqueued
from shop.models import Order
from shop.tasks import confirm, count_orders, refund

from detent import TransactionClient
from detent.errors import InvalidPayload
from detent.integrations.django import application
from detent.integrations.django.backend import DetentBackend


class Rollback(Exception):
    """Raised to roll back."""


def row(result_id: str) -> Any:
    """Return the job as the open transaction sees it."""
    with application.client() as reader:
        assert isinstance(reader, TransactionClient)
        return reader.get(result_id).row


class InTransactions(TransactionTestCase):
    """J2: the task has the fate of the rows that were written with it."""

    def test_commit(self) -> None:
        with transaction.atomic():
            order = Order.objects.create(item="lamp")
            result = confirm.enqueue(order.id)
            assert confirm.get_result(result.id).status == TaskResultStatus.READY
            with application.current() as app:
                assert app.jobs.list(task="shop.tasks.confirm") == []  # others do not see it yet
        with application.current() as app:
            (job,) = app.jobs.list(task="shop.tasks.confirm")
            assert str(job.id) == result.id
            job.cancel()
        result.refresh()
        assert (result.status, result.is_finished) == (TaskResultStatus.FAILED, True)

    def test_rollback(self) -> None:
        try:
            with transaction.atomic():
                result = confirm.enqueue(Order.objects.create(item="lamp").id)
                raise Rollback
        except Rollback:
            pass
        assert not Order.objects.exists()
        with pytest.raises(TaskResultDoesNotExist):
            default_task_backend.get_result(result.id)

    def test_savepoint(self) -> None:
        with transaction.atomic():
            kept = count_orders.enqueue()
            try:
                with transaction.atomic():
                    lost = confirm.enqueue(1)
                    raise Rollback
            except Rollback:
                pass
        assert kept.task.get_backend().get_result(kept.id).status == TaskResultStatus.READY
        with application.current() as app:
            assert [str(job.id) for job in app.jobs.list(state="pending", limit=1)] == [kept.id]
            assert lost.id != kept.id
            app.jobs.get(kept.id).cancel()

    def test_a_refused_task_leaves_the_transaction_usable(self) -> None:
        with transaction.atomic():
            with pytest.raises(InvalidPayload):
                refund.enqueue("x" * 2_000_000)
            Order.objects.create(item="chair")
        assert Order.objects.filter(item="chair").exists()


class Enqueued(TestCase):
    """What is enqueued in a `TestCase` is gone with its transaction."""

    def test_options_of_a_call_are_kept(self) -> None:
        later = timezone.now() + timedelta(hours=1)
        result = confirm.using(priority=-7, queue_name="default", run_after=later).enqueue(order_id=3)
        job = row(result.id)
        assert (job.priority, job.queue, job.due_at, job.task) == (-7, "default", later, "shop.tasks.confirm")
        found = default_task_backend.get_result(result.id)
        assert (found.kwargs, found.args, found.task) == ({"order_id": 3}, [], result.task)
        assert found.task.run_after == later

    def test_the_capabilities_are_those_that_are_kept(self) -> None:
        assert isinstance(task_backends["default"], DetentBackend)
        for one in ("defer", "async_task", "get_result", "priority"):
            assert getattr(default_task_backend, f"supports_{one}")

    async def test_async(self) -> None:
        result = await count_orders.aenqueue()
        assert (await count_orders.aget_result(result.id)).status == TaskResultStatus.READY
        await result.arefresh()
        assert (result.attempts, result.errors) == (0, [])

    def test_results_that_are_not_there(self) -> None:
        for result_id in ("999999", "no number", ""):
            with pytest.raises(TaskResultDoesNotExist):
                default_task_backend.get_result(result_id)
        with pytest.raises(TaskResultMismatch):
            refund.get_result(count_orders.enqueue().id)

    def test_arguments_and_queues_that_are_refused(self) -> None:
        with application.client() as reader:
            before = reader.enqueue(application.app.find_task("shop.tasks.refund").call(args=[1], kwargs={})).id
        with pytest.raises(TypeError):
            refund.enqueue(timezone.now())
        with pytest.raises(InvalidTaskError):
            refund.using(queue_name="no queue")
        with pytest.raises(InvalidTaskError):
            refund.using(priority=101)
        assert int(refund.enqueue(2).id) == before + 1, "nothing was enqueued in between"

    def test_a_signal_is_sent(self) -> None:
        heard: list[str] = []

        def hear(task_result: Any, **_: Any) -> None:
            heard.append(task_result.id)

        task_enqueued.connect(hear)
        try:
            result = refund.enqueue(1)
        finally:
            task_enqueued.disconnect(hear)
        assert heard == [result.id]


class Settings(TestCase):
    """What is refused says what to do."""

    def test_options_of_the_backend(self) -> None:
        with self.assertRaisesMessage(ImproperlyConfigured, "has 'queue'. Set it on the task instead."):
            DetentBackend("x", {"OPTIONS": {"queue": "mail"}})
        for option, told in (({"timeout": -1}, "TASKS['x']['OPTIONS']: timeout"), ({"retires": 3}, "retires")):
            backend = DetentBackend("x", {"OPTIONS": option})
            with self.assertRaisesMessage(ImproperlyConfigured, told):
                backend._declare(refund)

    def test_the_setting_detent(self) -> None:
        told = "DETENT is a list. Set it to a dict"
        with override_settings(DETENT=["console"]), self.assertRaisesMessage(ImproperlyConfigured, told):
            application._chosen()

    @skipIf(connection.vendor != "sqlite", "is about SQLite")
    def test_a_database_in_memory(self) -> None:
        kept = connection.settings_dict["NAME"]
        connection.settings_dict["NAME"] = "file:memorydb_default?mode=memory&cache=shared"
        try:
            with self.assertRaisesMessage(ImproperlyConfigured, 'set "TEST"'):
                refund.enqueue(1)
        finally:
            connection.settings_dict["NAME"] = kept
