"""Spans from enqueue to execution, with the SDK of OpenTelemetry."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from detent import Context, Detent, Retry, Snooze
from detent.declare.around_hooks import Around
from detent.telemetry.spans import attempt_span
from detent.telemetry.tracing import is_traced
from detent.testing.harness import Harness
from tests.processes.worker_processes import ROOT

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
GIVEN = f"00-{TRACE}-00f067aa0ba902b7-01"


@pytest.fixture
def exporter(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    """Spans in memory. A program sets its provider once; a test takes it away again."""
    found = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(found))
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", provider)
    yield found
    provider.shutdown()


@pytest.fixture
def harness(sqlite_store_url: str) -> Iterator[Harness]:
    with closing(Harness(sqlite_store_url)) as harness:
        yield harness


@pytest.fixture
def app(harness: Harness) -> Iterator[Detent]:
    with Detent(harness.url) as app:
        # As a worker does once it has imported the application.
        app.around_hooks.insert(0, Around("attempt_span", attempt_span, is_async=False))

        @app.task(name="add", queue="sums")
        def add(ctx: Context, a: int, b: int) -> int:
            return a + b

        @app.task(name="fail", retry=Retry(0))
        async def fail(ctx: Context) -> None:
            raise ValueError("as it must")

        @app.task(name="later")
        def later(ctx: Context) -> None:
            raise Snooze(60)

        @app.task(name="intends")
        def intends(ctx: Context) -> None:
            with ctx.commit() as tx:
                tx.intend(add.call(1, 2))

        yield harness.use(app)


def by_name(exporter: InMemorySpanExporter) -> dict[str, ReadableSpan]:
    return {span.name: span for span in exporter.get_finished_spans()}


def test_an_attempt_continues_the_trace(app: Detent, harness: Harness, exporter: InMemorySpanExporter) -> None:
    """M3: producer and consumer span, linked, with ids."""
    with trace.get_tracer("test").start_as_current_span("request") as request:
        job = app.enqueue(app.find_task("add").call(1, 2), tenant="acme", correlation_id="order-7")
        harness.work()
    spans = by_name(exporter)
    sent, done = spans["send sums"], spans["process sums"]
    assert (sent.kind, done.kind) == (SpanKind.PRODUCER, SpanKind.CONSUMER)
    assert sent.parent is not None
    assert sent.parent.span_id == request.get_span_context().span_id
    assert done.parent is not None
    assert done.parent.span_id == sent.context.span_id
    assert [link.context.span_id for link in done.links] == [sent.context.span_id]
    assert done.context.trace_id == sent.context.trace_id
    assert done.attributes == {
        "messaging.system": "detent",
        "messaging.operation.name": "process",
        "messaging.operation.type": "process",
        "messaging.destination.name": "sums",
        "messaging.message.id": str(job.id),
        "messaging.message.conversation_id": "order-7",
        "detent.task": "add",
        "detent.attempt": 1,
        "detent.tenant": "acme",
    }
    assert sent.attributes is not None
    assert sent.attributes["messaging.message.id"] == str(job.id)
    assert done.status.status_code is StatusCode.UNSET


def test_many_jobs_and_the_async_client(app: Detent, exporter: InMemorySpanExporter) -> None:
    add = app.find_task("add")
    jobs = asyncio.run(app.aio.enqueue_many(add.call(n, n) for n in range(3)))
    (span,) = exporter.get_finished_spans()
    assert span.attributes is not None
    assert span.attributes["messaging.batch.message_count"] == 3
    rows = app.store.job_get([job.id for job in jobs])
    assert {row.traceparent[:-3] for row in rows if row and row.traceparent} == {
        f"00-{span.context.trace_id:032x}-{span.context.span_id:016x}"
    }


def test_errors(app: Detent, harness: Harness, exporter: InMemorySpanExporter) -> None:
    """M3: a function that fails makes an error; one that asks to be called later does not."""
    for name in ("fail", "later"):
        app.enqueue(app.find_task(name).call())
    harness.work()
    failed, later = [span for span in exporter.get_finished_spans() if span.kind is SpanKind.CONSUMER]
    assert (failed.status.status_code, failed.status.description) == (StatusCode.ERROR, "ValueError")
    assert [event.name for event in failed.events] == ["exception"]
    assert later.status.status_code is StatusCode.UNSET
    assert later.attributes is not None
    assert later.attributes["detent.outcome"] == "snoozed"


def test_an_intent_continues_a_given_trace(app: Detent, harness: Harness, exporter: InMemorySpanExporter) -> None:
    """M3: the job of an intent belongs to the trace of the job that intended it."""
    app.enqueue(app.find_task("intends").call(), traceparent=GIVEN)
    harness.work()
    attempts = [span for span in exporter.get_finished_spans() if span.kind is SpanKind.CONSUMER]
    assert [span.attributes and span.attributes["detent.task"] for span in attempts] == ["intends", "add"]
    assert {f"{span.context.trace_id:032x}" for span in attempts} == {TRACE}


def test_without_a_provider_nothing_is_traced(app: Detent) -> None:
    assert not is_traced()
    job = app.enqueue(app.find_task("add").call(1, 2))
    (row,) = app.store.job_get([job.id])
    assert row is not None
    assert row.traceparent is None


def test_opentelemetry_is_not_imported_by_detent() -> None:
    program = """
import sys
from detent import Context, Detent
app = Detent("sqlite:///none.db")
app.task(name="add")(lambda ctx: None)
import detent.worker.child.process, detent.client.client, detent.cli.main
assert not [name for name in sys.modules if name.startswith(("opentelemetry", "prometheus"))]
"""
    subprocess.run([sys.executable, "-c", program], check=True, cwd=ROOT)


def test_a_worker_exports_its_spans(sqlite_store_url: str, tmp_path: Path) -> None:
    """M3: a real worker: async functions, plain ones and processes of their own, also when it stops."""
    spans = tmp_path / "spans"
    environment = {"DETENT_DATABASE_URL": sqlite_store_url, "DETENT_TEST_SPANS": str(spans), "PATH": "/usr/bin"}
    with Detent(sqlite_store_url) as app:
        for name in ("outer", "apart"):
            app.enqueue(app.task(name=name)(lambda ctx: None).call(), traceparent=GIVEN)
        command = [sys.executable, "-m", "detent.cli", "worker", "tests.telemetry.traced_shop:app", "--drain"]
        subprocess.run(command, check=True, cwd=ROOT, env=environment, timeout=110)
        results = [job.result for job in app.jobs.list(task="inner")]
    found: list[dict[str, Any]] = [json.loads(line) for line in spans.read_text().splitlines()]
    assert results == [TRACE]
    assert sorted((span["name"], span["attributes"]["detent.task"]) for span in found) == [
        ("process default", "apart"),
        ("process default", "inner"),
        ("process default", "outer"),
        ("send default", "inner"),
    ]
    assert {span["context"]["trace_id"] for span in found} == {f"0x{TRACE}"}
