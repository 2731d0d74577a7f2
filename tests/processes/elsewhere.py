"""Tasks whose effect is in another database, and whose process is killed between the commit there and the mark here."""

from __future__ import annotations

import os
import signal
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg

from detent import Context, Detent, Retry

INSERT = "INSERT INTO ledger (line) VALUES (:line)"


class DeadlyPostgres(psycopg.Connection[Any]):
    """Kills its process as soon as a commit is through."""

    def commit(self) -> None:
        super().commit()
        os.kill(os.getpid(), signal.SIGKILL)


class DeadlySqlite(sqlite3.Connection):
    """Kills its process as soon as a commit is through."""

    def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
        done = super().execute(sql, parameters)
        if sql == "COMMIT":
            os.kill(os.getpid(), signal.SIGKILL)
        return done


@contextmanager
def connected(data: str, *, deadly: bool) -> Iterator[Any]:
    if data.startswith("sqlite:///"):
        factory = DeadlySqlite if deadly else sqlite3.Connection
        connection: Any = sqlite3.connect(data.removeprefix("sqlite:///"), factory=factory)
    else:
        connection = (DeadlyPostgres if deadly else psycopg.Connection).connect(data)
    try:
        yield connection
    finally:
        connection.close()


def book(ctx: Context, data: str, line: str) -> None:
    with connected(data, deadly=ctx.attempt == 1) as connection, ctx.commit(connection) as tx:
        tx.execute(INSERT, {"line": line})
        tx.intend(app.find_task("follow").call(line=line))


def book_unmarked(ctx: Context, data: str, line: str) -> None:
    """The same without the boundary: what happens then is why there is one."""
    with connected(data, deadly=False) as connection:
        connection.execute(f"INSERT INTO ledger (line) VALUES ('{line}')")
        connection.commit()
        if ctx.attempt == 1:
            os.kill(os.getpid(), signal.SIGKILL)


def follow(ctx: Context, line: str) -> str:
    return line


def make_app(url: str | None = None) -> Detent:
    made = Detent(url)
    again = Retry(2, base=0.1, jitter=0)
    made.task(name="book", retry=again)(book)
    made.task(name="book_unmarked", retry=again)(book_unmarked)
    made.task(name="follow")(follow)
    return made


app = make_app()
