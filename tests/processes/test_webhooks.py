"""Outgoing webhooks with real workers: each event is delivered, whoever dies, and a hanging receiver slows nothing."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from detent import Call, Context, Detent, Retry
from detent.webhooks.outgoing import DELIVERY_TASK
from prove.security.canary import Canary, canary
from tests.processes.worker_processes import Bench, until


@contextmanager
def notifying(bench: Bench, receiver: Canary) -> Iterator[None]:
    """Let the workers of the bench deliver to a receiver on loopback."""
    bench._environment |= {
        "NOTIFY_URL": f"http://127.0.0.1:{receiver.port}/",
        "DETENT_WEBHOOK_ALLOW": f"127.0.0.1:{receiver.port}",
        "KILL_AT": str(bench.directory / "kill"),
    }
    yield


def test_each_event_is_delivered_under_one_id_whoever_dies(bench: Bench) -> None:
    """TW6: a process dies between the place and the deliveries, another one between the deliveries and the list."""
    kill = bench.directory / "kill"
    with canary() as receiver, notifying(bench, receiver):
        bench.worker(app="tests.processes.notifier:app")
        until(lambda: bench.app.store.webhook_place("erp"), "the reader")
        kill.write_text("place")
        for number in range(3):
            bench.app.alerts.raise_(f"alert_{number}", "no one answers")
        until(lambda: not kill.exists(), "a death between place and deliveries")
        kill.write_text("failures")
        jobs = [bench.app.enqueue(call_of(bench, "fail")).id for _ in range(3)]
        until(lambda: not kill.exists(), "a death after the deliveries of failures")
        # The term of the dead process is over.
        bench.app.store.failure_report_keep([(job, 1) for job in jobs], 0)
        wanted = {*(f"alert_{number}" for number in range(3)), *map(str, jobs)}
        until(lambda: wanted <= {about for about, _ in told(receiver)}, "every event")
        until(lambda: all(one.state == "succeeded" for one in bench.app.jobs.list(task=DELIVERY_TASK)), "their jobs")
    assert len(set(told(receiver))) == len(wanted), "one id for each event"
    assert len(bench.app.jobs.list(task=DELIVERY_TASK)) == len(wanted)
    assert bench.is_healthy()


def call_of(bench: Bench, name: str) -> Call[Any]:
    """Describe a call of a task that only the application of the workers declares."""
    there = Detent(bench.url)

    @there.task(name=name, retry=Retry(0))
    def task(ctx: Context) -> None: ...

    return task.call()


def told(receiver: Canary) -> list[tuple[str, str]]:
    """What each request was about, and its id."""
    found = []
    for request in receiver.requests:
        head, _, body = request.partition(b"\r\n\r\n")
        data = json.loads(body)["data"]
        sent = head.lower().partition(b"webhook-id: ")[2].partition(b"\r\n")[0].decode()
        found.append((data.get("job_id") or data["alert"], sent))
    return found


def test_a_receiver_that_hangs_slows_nothing_else(sqlite_bench: Bench) -> None:
    """TW6: it holds two slots of the workers at most."""
    bench = sqlite_bench

    def hang(connection: socket.socket, request: bytes) -> None:
        connection.recv(1)

    with canary(hang) as receiver, notifying(bench, receiver):
        bench.worker(app="tests.processes.notifier:app", slots=4)
        for _ in range(6):
            bench.app.enqueue(call_of(bench, "fail"))
        until(lambda: len(receiver.requests) == 2, "two deliveries that hang")
        jobs = bench.app.enqueue_many([call_of(bench, "pass") for _ in range(50)])
        for job in jobs:
            bench.rests(job, "succeeded")
        running = bench.app.jobs.list(task=DELIVERY_TASK, state="running")
        assert (len(running), receiver.connections) == (2, 2)
