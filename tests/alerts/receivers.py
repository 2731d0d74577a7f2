"""Those whom alerts are told to, as real servers on the loopback: one for HTTP, one for mail."""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.deadlines import scaled

__all__ = ["HttpReceiver", "MailReceiver", "http_receiver", "mail_receiver", "self_signed"]

SECONDS_MAX = scaled(60.0)


@dataclass
class Answer:
    """How the HTTP receiver answers."""

    status: int = 200
    body: str = "ok"
    headers: dict[str, str] = field(default_factory=dict)


class HttpReceiver:
    """Keeps what was posted; answers with the next of `answers`, then with 200."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.answers: list[Answer] = []
        self.posted: list[dict[str, Any]] = []
        self.paths: list[str] = []
        self.headers: list[dict[str, str]] = []
        self.refused = 0
        self.hold: threading.Event | None = None
        self._came = threading.Condition()

    def take(self, path: str, headers: dict[str, str], body: bytes) -> Answer:
        """One request."""
        if self.hold is not None:
            self.hold.wait(SECONDS_MAX)
        with self._came:
            answer = self.answers.pop(0) if self.answers else Answer()
            if answer.status < 300:
                self.posted.append(json.loads(body))
                self.paths.append(path)
                self.headers.append(headers)
            else:
                self.refused += 1
            self._came.notify_all()
        return answer

    def wait_for(self, count: int) -> list[dict[str, Any]]:
        """What was posted, once there is so much of it."""
        with self._came:
            assert self._came.wait_for(lambda: len(self.posted) >= count, SECONDS_MAX), self.posted
            return list(self.posted)

    @property
    def texts(self) -> list[str]:
        """The headlines of what a webhook got."""
        return [one["text"] for one in self.posted]


class _QuietServer(ThreadingHTTPServer):
    """Callers that hang up are part of the play."""

    def handle_error(self, request: Any, client_address: Any) -> None:
        pass


@contextmanager
def http_receiver(tls: tuple[Path, Path] | None = None) -> Iterator[HttpReceiver]:
    """A server of this test's own."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            answer = receiver.take(self.path, dict(self.headers), body)
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(answer.body.encode())

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = _QuietServer(("127.0.0.1", 0), Handler)
    if tls is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*tls)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    receiver = HttpReceiver(f"{'http' if tls is None else 'https'}://localhost:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@dataclass
class MailReceiver:
    """Keeps the mail it took. `refuses`: mailboxes it does not know; `login`: who may send, None is anybody."""

    login: tuple[str, str] | None = None
    tls: ssl.SSLContext | None = None
    refuses: set[str] = field(default_factory=set)
    says_to_data: str = "250 taken"
    address: str = ""
    mails: list[EmailMessage] = field(default_factory=list)
    envelopes: list[tuple[str, list[str]]] = field(default_factory=list)
    secured: list[bool] = field(default_factory=list)
    writers: list[asyncio.StreamWriter] = field(default_factory=list)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One conversation."""
        self.writers.append(writer)
        sender, recipients, secure, known = "", [], False, self.login is None

        async def say(*lines: str) -> None:
            writer.write("".join(f"{line}\r\n" for line in lines).encode())
            await writer.drain()

        await say("220 receiver")
        while line := (await reader.readline()).decode().strip():
            verb, _, rest = line.partition(" ")
            match verb.upper():
                case "EHLO":
                    extras = ["250-STARTTLS"] if self.tls and not secure else []
                    await say("250-receiver", *extras, "250-AUTH PLAIN", "250 8BITMIME")
                case "STARTTLS":
                    await say("220 go on")
                    assert self.tls is not None
                    await writer.start_tls(self.tls)
                    secure = True
                case "AUTH":
                    _, user, password = base64.b64decode(rest.split()[1]).decode().split("\0")
                    known = (user, password) == self.login
                    await say("235 welcome" if known else f"535 {password} is not your password")
                case "MAIL":
                    sender = rest.partition(":")[2].split()[0].strip("<>")
                    await say("250 ok" if known else "530 log in first")
                case "RCPT":
                    who = rest.partition(":")[2].strip("<>")
                    if who in self.refuses:
                        await say("550 nobody of that name")
                    else:
                        recipients.append(who)
                        await say("250 ok")
                case "DATA":
                    await say("354 go on")
                    body = await reader.readuntil(b"\r\n.\r\n")
                    await say(self.says_to_data)
                    if self.says_to_data.startswith("250"):
                        self.mails.append(_mail(body))
                        self.envelopes.append((sender, list(recipients)))
                        self.secured.append(secure)
                case "QUIT":
                    await say("221 bye")
                    break
                case _:
                    await say("250 ok")
        writer.close()


def _mail(body: bytes) -> EmailMessage:
    found = message_from_bytes(body.removesuffix(b".\r\n").replace(b"\r\n..", b"\r\n."), policy=policy.default)
    assert isinstance(found, EmailMessage)
    return found


@contextmanager
def mail_receiver(receiver: MailReceiver) -> Iterator[MailReceiver]:
    """A server of this test's own; `address` is host:port."""
    loop = asyncio.new_event_loop()
    server = loop.run_until_complete(asyncio.start_server(receiver.serve, "127.0.0.1", 0))
    receiver.address = f"localhost:{server.sockets[0].getsockname()[1]}"
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield receiver
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.run_until_complete(_hang_up(server, receiver.writers))
        loop.close()


async def _hang_up(server: asyncio.Server, writers: list[asyncio.StreamWriter]) -> None:
    """End every conversation, also one that is under way: what is left open would fail a test that comes later."""
    server.close()
    conversations = asyncio.all_tasks() - {asyncio.current_task()}
    for conversation in conversations:
        conversation.cancel()
    await asyncio.gather(*conversations, return_exceptions=True)
    for writer in writers:
        writer.transport.abort()
    await asyncio.sleep(0)  # in which they are closed


def self_signed(directory: Path) -> tuple[Path, Path]:
    """A certificate for localhost that nobody knows, and its key."""
    certificate, key = directory / "cert.pem", directory / "key.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"),
            *("-addext", "subjectAltName=DNS:localhost", "-keyout", str(key), "-out", str(certificate)),
        ],
        check=True,
        capture_output=True,
    )
    return certificate, key
