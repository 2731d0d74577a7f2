"""Traces: whether the program makes any, and what is done if it does.

Detent never imports OpenTelemetry by itself. It makes spans if the program has imported it and has set a tracer
provider. Otherwise a call costs one look-up in `sys.modules`, and attempts cost nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, TypeVar

from detent.declare.enqueue import EnqueueOptions

__all__ = ["current_traceparent", "flush_spans", "is_traced", "send_traced", "send_traced_async"]

J = TypeVar("J")


def is_traced() -> bool:
    """Return whether the program has set a tracer provider."""
    trace = sys.modules.get("opentelemetry.trace")
    if trace is None:
        return False
    provider = trace.get_tracer_provider()
    return not isinstance(provider, trace.ProxyTracerProvider | trace.NoOpTracerProvider)


def current_traceparent() -> str | None:
    """Return the W3C trace context of the span that is current here; None if there is none."""
    if not is_traced():
        return None
    from detent.telemetry.spans import current_traceparent

    return current_traceparent()


def send_traced(
    send: Callable[[Iterable[Any], EnqueueOptions], list[J]], calls: Iterable[Any], sending: EnqueueOptions
) -> list[J]:
    """Send calls inside a span, whose context is stored with the jobs. Only if `is_traced`."""
    from detent.telemetry.spans import producer_span

    with producer_span(calls, sending) as (again, traced, sent):
        return sent(send(again, traced))


async def send_traced_async(
    send: Callable[[Iterable[Any], EnqueueOptions], Awaitable[list[J]]], calls: Iterable[Any], sending: EnqueueOptions
) -> list[J]:
    """Do the same on an event loop."""
    from detent.telemetry.spans import producer_span

    with producer_span(calls, sending) as (again, traced, sent):
        return sent(await send(again, traced))


def flush_spans(seconds: float) -> None:
    """Have the spans that have ended exported, before the process exits without further notice."""
    if is_traced():
        flush = getattr(sys.modules["opentelemetry.trace"].get_tracer_provider(), "force_flush", None)
        if flush is not None:
            flush(int(seconds * 1000))
