"""`GET /metrics`: the metrics of the database, for Prometheus."""

from __future__ import annotations

import threading

from fastapi import FastAPI
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from detent.app.detent import Detent
from detent.http.callers import caller_of
from detent.http.problems import refuse
from detent.telemetry.exposition import encode_metrics
from detent.telemetry.shared_metrics import SharedMetrics

__all__ = ["add_metrics_route"]


def add_metrics_route(api: FastAPI, app: Detent) -> None:
    """Add the route. Any token that reaches all tenants may read it."""
    shared = SharedMetrics(lambda: app.store, app.clock)
    reading = threading.Lock()

    def encoded(accept: str) -> tuple[bytes, str]:
        with reading:
            return encode_metrics(accept, shared.read)

    async def metrics(request: Request) -> Response:
        if caller_of(request).tenant is not None:
            return refuse(403, "metrics cover all tenants, and the token reaches one. Use a token without a tenant")
        body, content_type = await run_in_threadpool(encoded, request.headers.get("accept", ""))
        return Response(body, headers={"Content-Type": content_type, "Cache-Control": "no-store"})

    api.add_api_route("/metrics", metrics, include_in_schema=False)
