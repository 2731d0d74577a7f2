"""An ASGI application on a real socket, served by a thread of the test process."""

from __future__ import annotations

import gc
import socket
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tests.deadlines import scaled, until

__all__ = ["serve_application"]


@contextmanager
def serve_application(application: Any, *, stop: Callable[[], None], port: int = 0) -> Iterator[str]:
    """Serve an application on loopback until the block ends, and yield its URL. `stop` ends its streams."""
    import uvicorn

    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
        config = uvicorn.Config(application, log_config=None, access_log=False, timeout_graceful_shutdown=5)
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        try:
            until(lambda: server.started, "the start of the server")
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            stop()
            server.should_exit = True
            thread.join(scaled(20))
            assert not thread.is_alive()
            with warnings.catch_warnings():
                # The loop ends before it has closed the sockets of connections that clients dropped. Otherwise the
                # warning about them would fail a later test.
                warnings.simplefilter("ignore", ResourceWarning)
                gc.collect()
