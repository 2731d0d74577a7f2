"""An application whose spans are written to a file: `DETENT_TEST_SPANS` names it. For the worker of a test."""

from __future__ import annotations

import os

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter

from detent import Context, Detent

provider = TracerProvider()
provider.add_span_processor(
    BatchSpanProcessor(
        ConsoleSpanExporter(
            out=open(os.environ["DETENT_TEST_SPANS"], "a"),  # noqa: SIM115 - open as long as the process
            formatter=lambda span: f"{span.to_json(indent=None)}\n",
        )
    )
)
trace.set_tracer_provider(provider)

app = Detent()


@app.task(name="outer")
async def outer(ctx: Context) -> None:
    await app.aio.enqueue(inner.call())


@app.task(name="inner")
def inner(ctx: Context) -> str:
    return format(trace.get_current_span().get_span_context().trace_id, "032x")


@app.task(name="apart", process=True)
def apart(ctx: Context) -> None: ...
