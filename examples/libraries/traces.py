"""Traces of OpenTelemetry: `python examples/libraries/traces.py`. The spans are written into a file."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor

from detent import Context, Detent, Retry

app = Detent()


def line_of(span: ReadableSpan) -> str:
    """Return a span as one line of JSON."""
    assert span.context is not None
    ids = {"id": span.context.span_id, "trace": span.context.trace_id, "parent": span.parent and span.parent.span_id}
    return json.dumps({**ids, "name": span.name, "status": span.status.status_code.name, "at": span.start_time}) + "\n"


def trace_into(path: str) -> None:
    """Write the spans of this process into a file. A program of yours sends them to a collector."""
    provider = TracerProvider()
    lines = Path(path).open("a", buffering=1)  # noqa: SIM115 it is open as long as the process
    exporter = ConsoleSpanExporter(out=lines, formatter=line_of)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)


if "SPANS" in os.environ:  # also in the worker, which imports this module
    trace_into(os.environ["SPANS"])


@app.task(name="order.mail", queue="mail")
def mail(ctx: Context, order_id: int) -> None:
    """Mail the customer."""


@app.task(name="order.pay", retry=Retry(1, base=0.01))
def pay(ctx: Context, order_id: int) -> None:
    """Fail once. Then enqueue another job, in the same trace."""
    with trace.get_tracer("shop").start_as_current_span("ask the bank"):
        if ctx.attempt == 1:
            raise ConnectionError("the bank did not answer")
    mail.enqueue(order_id=order_id)


def play(directory: Path) -> None:
    """Enqueue a job inside of a span of the shop's own, let a worker run it, and print the spans."""
    here, spans = Path(__file__), directory / "spans"
    environment = os.environ | {
        "DETENT_DATABASE_URL": f"sqlite:///{directory}/shop.db",
        "SPANS": str(spans),
        "PYTHONPATH": str(here.parent),
    }
    for command in ([str(here), "send"], ["-m", "detent.cli", "worker", f"{here.stem}:app", "--drain"]):
        subprocess.run([sys.executable, *command], env=environment, check=True, capture_output=True, timeout=100)
    found = sorted((json.loads(line) for line in spans.read_text().splitlines()), key=lambda span: span["at"])
    names = {span["id"]: span["name"] for span in found}
    for span in found:
        print(f"{span['name']} | parent: {names.get(span['parent'])} | {span['status']}")
    print(f"traces: {len({span['trace'] for span in found})}")


def send() -> None:
    """Be the web server that takes an order."""
    with trace.get_tracer("shop").start_as_current_span("POST /orders"):
        pay.enqueue(order_id=7)
    app.close()


if __name__ == "__main__":
    if sys.argv[1:] == ["send"]:
        send()
    else:
        with tempfile.TemporaryDirectory(prefix="detent-traces-") as directory:
            play(Path(directory))
