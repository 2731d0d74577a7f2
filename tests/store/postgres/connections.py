"""Ways into a PostgreSQL database: plain statements, another login, a proxy that loses a COMMIT."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Literal
from urllib.parse import urlsplit

import psycopg

from detent.testing.lossy_proxy import Loss, Proxy, Request

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
    armed = threading.Event()

    def loses(request: Request) -> Loss | None:
        if not armed.is_set() or b"COMMIT" not in request.data:
            return None
        armed.clear()
        return "request" if fault == "before" else "answer"

    with Proxy(url, loses) as proxy:
        yield proxy.url, armed
