"""The servers that examples bring along: a caller that hangs up leaves no traceback on the screen."""

from __future__ import annotations

import importlib
import socket
import struct
from typing import Any

import pytest

RESET = struct.pack("ii", 1, 0)  # SO_LINGER: closing sends a reset, as the end of a killed process does


def supplier() -> Any:
    module = importlib.import_module("examples.diamonds.supplier")
    return module.serve(module.Supplier(60_000))[0]


def shop() -> Any:
    module = importlib.import_module("examples.reprice.shop")
    return module.serve(module.Shop(200_000))[0]


@pytest.mark.parametrize(
    ("serve", "path"), [(supplier, "/stones?low=0&high=999999&offset=0&limit=60000"), (shop, "/products")]
)
def test_a_caller_that_hangs_up_leaves_no_traceback(serve: Any, path: str, capfd: pytest.CaptureFixture[str]) -> None:
    server = serve()
    server.daemon_threads = False  # so that closing waits for those who answer
    try:
        with socket.create_connection(server.server_address) as caller:
            caller.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            caller.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            assert caller.recv(1)
    finally:
        server.shutdown()
        server.server_close()
    assert capfd.readouterr().err == ""
