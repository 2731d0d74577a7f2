"""What the tests of the PostgreSQL store share: logins, doors to a database that lie, processes that start at once."""

from __future__ import annotations

import contextlib
import selectors
import socket
import threading
from collections.abc import Iterator
from typing import Literal
from urllib.parse import urlsplit

import psycopg

__all__ = ["as_user", "behind_proxy", "run_sql"]

Fault = Literal["before", "after"]


def run_sql(url: str, *statements: str) -> list[tuple[object, ...]]:
    """Run statements one by one, each durable; the rows of the last."""
    rows: list[tuple[object, ...]] = []
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in statements:
            cursor = connection.execute(statement.encode())
            rows = cursor.fetchall() if cursor.description else []
    return rows


def as_user(url: str, user: str, password: str = "") -> str:
    """The same database for somebody else."""
    parts = urlsplit(url)
    who = f"{user}:{password}" if password else user
    return f"{parts.scheme}://{who}@{parts.hostname}:{parts.port}{parts.path}"


@contextlib.contextmanager
def behind_proxy(url: str, fault: Fault) -> Iterator[tuple[str, threading.Event]]:
    """A way to the database on which, once armed, the next COMMIT is lost: before the server has it, or after it was
    carried out but before the client hears of it. Gives the url and the event that arms it."""
    parts = urlsplit(url)
    armed = threading.Event()
    ended = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as door:
        door.settimeout(0.05)
        threads: list[threading.Thread] = []

        def serve() -> None:
            while not ended.is_set():
                with contextlib.suppress(TimeoutError):
                    client, _ = door.accept()
                    server = socket.create_connection((str(parts.hostname), parts.port or 5432))
                    thread = threading.Thread(target=_carry, args=(client, server, armed, ended, fault))
                    threads.append(thread)
                    thread.start()

        serving = threading.Thread(target=serve)
        serving.start()
        try:
            yield f"{parts.scheme}://{parts.username}@127.0.0.1:{door.getsockname()[1]}{parts.path}", armed
        finally:
            ended.set()
            for thread in (serving, *threads):
                thread.join()


def _carry(
    client: socket.socket, server: socket.socket, armed: threading.Event, ended: threading.Event, fault: Fault
) -> None:
    losing = False
    with client, server, selectors.DefaultSelector() as selector:
        selector.register(client, selectors.EVENT_READ, server)
        selector.register(server, selectors.EVENT_READ, client)
        while not ended.is_set():
            for key, _ in selector.select(0.05):
                source, target = key.fileobj, key.data
                assert isinstance(source, socket.socket)
                data = source.recv(65536)
                if source is client and armed.is_set() and b"COMMIT" in data:
                    armed.clear()
                    losing = True
                    if fault == "before":
                        return
                elif not data or losing:
                    return
                target.sendall(data)
