"""Servers for tests of the console: the real application on a real socket, in a thread of the test process."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.routing import Mount

from detent import Detent
from detent.http.api import build_api
from tests.deadlines import scaled, until

__all__ = ["serve_api"]


@contextmanager
def _serve(api: Any, *, stop: Callable[[], None]) -> Iterator[str]:
    """Serve an ASGI application on a free port until the block ends, and yield its URL. `stop` ends its streams."""
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", 0))
        server = uvicorn.Server(uvicorn.Config(api, log_config=None, access_log=False, timeout_graceful_shutdown=5))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        until(lambda: server.started, "the start of the server")
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            stop()
            server.should_exit = True
            thread.join(scaled(20))


@contextmanager
def serve_api(app: Detent, *, tokens_required: bool = False, prefix: str = "") -> Iterator[str]:
    """Serve the API and the console of an application, or mount them under a prefix of another one."""
    api = build_api(app, actor="ana", tokens_required=tokens_required)
    outer = Starlette(routes=[Mount(prefix, api)]) if prefix else api
    with _serve(outer, stop=api.state.streams.stop) as url:
        yield f"{url}{prefix}"
