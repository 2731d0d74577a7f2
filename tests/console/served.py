"""Servers for tests of the console: the real application on a real socket, in a thread of the test process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from starlette.applications import Starlette
from starlette.routing import Mount

from detent import Detent
from detent.http.api import build_api
from tests.served_application import serve_application

__all__ = ["serve_api"]


@contextmanager
def serve_api(app: Detent, *, tokens_required: bool = False, prefix: str = "") -> Iterator[str]:
    """Serve the API and the console of an application, or mount them under a prefix of another one."""
    api = build_api(app, actor="ana", tokens_required=tokens_required)
    outer = Starlette(routes=[Mount(prefix, api)]) if prefix else api
    with serve_application(outer, stop=api.state.streams.stop) as url:
        yield f"{url}{prefix}"
