"""`detent webhooks`: what is declared, and a test delivery to a real server."""

from __future__ import annotations

import json
import select
import signal
import socket

from detent import Detent
from tests.cli.shell import Shell
from tests.deadlines import scaled

HOOKED = """
from detent import Call, Context, Detent, WebhookDelivery

app = Detent()


@app.task(name="ship")
def ship(ctx: Context, order: int) -> None: ...


@app.webhook("orders", secret="env:ORDERS_SECRET", verify="github")
def take(delivery: WebhookDelivery) -> Call[None]:
    return ship.call(delivery.data["order"])


@app.webhook("silent", secret="env:NO_SUCH_SECRET", verify="stripe")
def silent(delivery: WebhookDelivery) -> None: ...


app.notify("erp", "https://erp.example/t0ken", secret="env:NO_SUCH_SECRET", on="run.*", tasks=[ship])
"""
SECRET = "known to both sides"


def test_what_is_declared_is_listed_without_secrets(shell: Shell) -> None:
    """U2, TW7"""
    (shell.directory / "hooked.py").write_text(HOOKED)
    listed = shell.run("webhooks", "list", "--app", "hooked:app", "--json", ORDERS_SECRET=SECRET)
    assert [(one["name"], one["is_on"], one["path"]) for one in listed.json] == [
        ("orders", True, "/hooks/orders"),
        ("silent", False, "/hooks/silent"),
    ]
    targets = shell.run("webhooks", "targets", "--app", "hooked:app")
    assert "https://erp.example " in targets.out
    assert SECRET not in listed.out + listed.err
    assert "t0ken" not in targets.out + targets.err


def test_a_test_delivery_reaches_the_server(shell: Shell) -> None:
    """U2, TW3: it is signed with the secret of the declaration, and sent again it finds its job."""
    (shell.directory / "hooked.py").write_text(HOOKED)
    (shell.directory / "order.json").write_text('{"order": 7}')
    shell.environment["ORDERS_SECRET"] = SECRET
    assert shell.run("webhooks", "send", "none", "order.json", "--app", "hooked:app").code == 3
    assert shell.run("webhooks", "send", "orders", "none.json", "--app", "hooked:app").code == 2
    with shell.start("server", "hooked:app", "--port", "0", "--json") as server:
        assert server.stdout is not None
        try:
            url = json.loads(server.stdout.readline())["url"]
            sending = ("webhooks", "send", "orders", "order.json", "--to", url, "--delivery-id", "d-1")
            sent = [shell.run(*sending, "--app", "hooked:app", "--json") for _ in range(2)]
            assert [(one.code, one.json["status"]) for one in sent] == [(0, 202), (0, 200)]
            port = int(url.rpartition(":")[2])
            for length in ("Content-Length: 25000000", "Transfer-Encoding: chunked"):
                status, size = flood(port, length)
                assert status == 413
                assert size < 25_000_000, "the server reads no more than the webhook may have"
            assert flood(port, "Content-Length: 25000000", signature="")[0] == 401
        finally:
            server.send_signal(signal.SIGTERM)
    with Detent(shell.environment["DETENT_DATABASE_URL"]) as app:
        assert [job.payload for job in app.jobs.list()] == [{"order": 7}]


def flood(port: int, length: str, signature: str = "sha256=00") -> tuple[int, int]:
    """Send 25 MB that are not signed, unless the server answers before. Return the status, and how much was sent."""
    head = f"POST /hooks/orders HTTP/1.1\r\nHost: localhost\r\nX-Hub-Signature-256: {signature}\r\n{length}\r\n\r\n"
    piece, sent = b"x" * 65536, 0
    if "chunked" in length:
        piece = b"10000\r\n" + piece + b"\r\n"
    with socket.create_connection(("127.0.0.1", port), timeout=scaled(30)) as connection:
        connection.sendall(head.encode())
        while sent < 25_000_000 and not select.select([connection], [], [], 0)[0]:
            try:
                connection.sendall(piece)
            except (BrokenPipeError, ConnectionResetError):
                break
            sent += len(piece)
        return int(connection.recv(1000).split()[1]), sent
