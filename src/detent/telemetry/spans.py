"""Spans of OpenTelemetry, by its conventions for messaging: one for each enqueue, and one for each attempt.

The span of an attempt continues the trace of the enqueue: that span is its parent, and linked. This module imports
OpenTelemetry, so it is imported only if the program has set a tracer provider.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Protocol, TypeVar, cast

from opentelemetry import trace
from opentelemetry.context import Context as TraceContext
from opentelemetry.trace import Link, Span, SpanKind, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from detent.declare.context import Context
from detent.declare.enqueue import EnqueueOptions
from detent.declare.signals import Snooze, Throttled
from detent.model.records import Claimed

__all__ = ["attempt_span", "current_traceparent", "producer_span"]

L = TypeVar("L", bound=list[Any])

_W3C = TraceContextTextMapPropagator()


class TracedAttempt(Protocol):
    """What a span has to know about an attempt."""

    @property
    def claimed(self) -> Claimed:
        """The job as it was claimed."""
        ...


def current_traceparent() -> str | None:
    """Return the W3C trace context of the current span; None if there is none."""
    carrier: dict[str, str] = {}
    _W3C.inject(carrier)
    return carrier.get("traceparent")


@contextmanager
def producer_span(
    calls: Iterable[Any], sending: EnqueueOptions
) -> Iterator[tuple[Iterable[Any], EnqueueOptions, Callable[[L], L]]]:
    """Open a span around an enqueue. Yield the calls, the options with the context of the span, and a function that
    notes the jobs that were made."""
    rest = iter(calls)
    first = list(itertools.islice(rest, 1))
    task = getattr(first[0], "task", None) if first else None
    queue = sending.queue or (task.options.queue if task is not None else "")
    attributes = _attributes("send", queue, task.name if task is not None else "")
    tracer = trace.get_tracer("detent")
    with tracer.start_as_current_span(f"send {queue}", kind=SpanKind.PRODUCER, attributes=attributes) as span:
        traced = replace(sending, traceparent=sending.traceparent or current_traceparent())

        def note(jobs: L) -> L:
            if len(jobs) == 1:
                span.set_attribute("messaging.message.id", str(jobs[0].id))
            else:
                span.set_attribute("messaging.batch.message_count", len(jobs))
            return jobs

        yield itertools.chain(first, rest), traced, note


@contextmanager
def attempt_span(context: Context) -> Iterator[None]:
    """Open a span around an attempt. A hook as `@app.around` takes it."""
    claimed = cast(TracedAttempt, context).claimed
    attributes = _attributes("process", claimed.queue, claimed.task) | {
        "messaging.message.id": str(claimed.job_id),
        "detent.attempt": claimed.attempt,
    }
    if claimed.correlation_id is not None:
        attributes["messaging.message.conversation_id"] = claimed.correlation_id
    if claimed.tenant:
        attributes["detent.tenant"] = claimed.tenant
    parent, links = _origin(claimed.traceparent)
    tracer = trace.get_tracer("detent")
    with tracer.start_as_current_span(
        f"process {claimed.queue}",
        context=parent,
        kind=SpanKind.CONSUMER,
        attributes=attributes,
        links=links,
        record_exception=False,
        set_status_on_exception=False,
    ) as span:
        try:
            yield
        except (Snooze, Throttled) as error:
            span.set_attribute("detent.outcome", "snoozed" if isinstance(error, Snooze) else "throttled")
            raise
        except BaseException as error:
            _fail(span, error)
            raise


def _attributes(operation: str, queue: str, task: str) -> dict[str, str | int]:
    return {
        "messaging.system": "detent",
        "messaging.operation.name": operation,
        "messaging.operation.type": operation,
        "messaging.destination.name": queue,
        "detent.task": task,
    }


def _origin(traceparent: str | None) -> tuple[TraceContext, list[Link]]:
    """Return the context of the enqueue, as parent and as link. An attempt whose job has none begins a trace."""
    # A context of its own: a span that happens to be current in the worker is not the parent.
    parent = _W3C.extract({"traceparent": traceparent} if traceparent else {}, context=TraceContext())
    origin = trace.get_current_span(parent).get_span_context()
    return parent, [Link(origin)] if origin.is_valid else []


def _fail(span: Span, error: BaseException) -> None:
    span.record_exception(error)
    span.set_status(StatusCode.ERROR, type(error).__name__)
    span.set_attribute("error.type", type(error).__qualname__)
