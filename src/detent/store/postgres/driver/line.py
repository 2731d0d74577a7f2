"""Short statements straight through libpq. What a cursor of psycopg's does around one costs its caller several times
what the statement itself does; here everything that is the same the next time is kept."""

from __future__ import annotations

import re
import select
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any
from weakref import proxy

import psycopg
from psycopg import abc
from psycopg.adapt import AdaptersMap, PyFormat, Transformer
from psycopg.pq import ExecStatus
from psycopg.pq.abc import PGresult
from psycopg.sql import SQL, Identifier

from detent.store.postgres.driver.deadline import no_answer, seconds_left

__all__ = ["Line"]

Row = tuple[Any, ...]

KEPT_MAX = 200
"""Statements that are kept prepared on one connection; the oldest goes first."""

_CANCEL_SECONDS_MAX = 2.0
_VERB = re.compile(r"detent\.\w+_v\d+\(")
_NEWS = select.POLLIN


class Line:
    """The way to the server behind one connection, which nobody else uses meanwhile. Only where no pooler stands in
    between: what was prepared must be there the next time."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        # The connection has its line: a circle would keep one that was lost, and the pool waits for it to be gone.
        self._connection: psycopg.Connection[Any] = proxy(connection)
        self._context = _Context(connection.adapters, self._connection)
        self._server = connection.pgconn
        self._encoding = connection.info.encoding
        self._named = 0
        self._poll = select.poll()
        self._poll.register(connection.fileno(), _NEWS)
        self.forget()

    def forget(self) -> None:
        """What was prepared may be gone, and values may be written in another way."""
        self._kept: dict[str, _Kept] = {}
        self._hand: abc.Transformer = Transformer(self._context)

    def ask(self, sql: str, params: Sequence[Any] = ()) -> list[Row]:
        """One of our own statements, written with %s: its rows."""
        kept = self._prepared(sql)
        return kept.read(self._trip(self._call(kept, params))[0])

    def ahead(self, sql: str, params: Sequence[Any]) -> Callable[[], list[Row]]:
        """The same, made ready now: to call what comes back is to send it."""
        kept = self._prepared(sql)
        call = self._call(kept, params)
        return lambda: kept.read(self._trip(call)[0])

    def sent(self, sql: str, params: Sequence[Any]) -> Callable[[], list[Row]] | None:
        """The same, sent now and waited for by whoever calls what comes back. None where nothing was sent, since it
        would take more than one trip."""
        if (kept := self._kept.get(sql)) is None:
            return None
        self._send(self._call(kept, params))
        return lambda: kept.read(self._answers(1)[0])

    def begin_with(self, sql: str, params: Sequence[Any]) -> list[Row]:
        """BEGIN, and one of our own statements, in one trip."""
        kept = self._prepared(sql)
        return kept.read(self._trip(self._bare(b"BEGIN"), self._call(kept, params))[1])

    def commit_with(self, sql: str, params: Sequence[Any]) -> str:
        """One of our own statements and COMMIT, in one trip: what the server said of the COMMIT. Where the statement
        fails the COMMIT is not run."""
        return _said(self._trip(self._call(self._prepared(sql), params), self._bare(b"COMMIT"))[1])

    def run(self, sql: bytes, params: Sequence[Any]) -> tuple[list[Row], int, str]:
        """A statement of somebody else's, written with $1, $2, as psycopg would send it: its rows, how many it read or
        changed, and what the server said of it."""
        hand = self._hand
        values = hand.dump_sequence(params, [PyFormat.AUTO] * len(params))
        [result] = self._trip(partial(self._server.send_query_params, sql, values, hand.types, hand.formats))
        return _loaded(hand, result), result.command_tuples or 0, _said(result)

    def _prepared(self, sql: str) -> _Kept:
        if (kept := self._kept.get(sql)) is not None:
            return kept
        if len(self._kept) >= KEPT_MAX:
            oldest = self._kept.pop(next(iter(self._kept)))
            self._connection.execute(SQL("DEALLOCATE {}").format(Identifier(oldest.name.decode())))
        self._named += 1
        verb = _VERB.search(sql)
        kept = _Kept(f"{self._named} {verb[0] if verb else sql[:20]}".encode(), Transformer(self._context))
        self._trip(partial(self._server.send_prepare, kept.name, _numbered(sql)))
        self._kept[sql] = kept
        return kept

    def _call(self, kept: _Kept, params: Sequence[Any]) -> Callable[[], None]:
        return partial(self._server.send_query_prepared, kept.name, kept.written(params))

    def _bare(self, word: bytes) -> Callable[[], None]:
        return partial(self._server.send_query_params, word, None)

    def _trip(self, *sends: Callable[[], None]) -> list[PGresult]:
        """Send all, then wait for what each of them gives. After one that failed the rest is not run. Raises the first
        error."""
        self._send(*sends)
        return self._answers(len(sends))

    def _send(self, *sends: Callable[[], None]) -> None:
        """Without waiting: what the way to the server cannot take now is pushed by whoever waits for the answers."""
        try:
            if piped := len(sends) > 1:
                self._server.enter_pipeline_mode()
            for send in sends:
                send()
            if piped:
                self._server.pipeline_sync()
        except BaseException as error:
            self._part(error)
            raise

    def _answers(self, count: int) -> list[PGresult]:
        results: list[PGresult] = []
        try:
            self._push()
            for _ in range(count):
                results.append(self._first())
                self._next()
            if count > 1:
                self._next()
                self._server.exit_pipeline_mode()
        except BaseException as error:
            self._part(error)
            # A server that ends a connection says why before it does.
            self._check(results)
            raise
        self._check(results)
        return results

    def _part(self, error: BaseException) -> None:
        """Nobody else may meet an answer to what was asked here: not after an interrupt either, while the server still
        works on it."""
        if not isinstance(error, psycopg.Error):
            with suppress(psycopg.Error):
                self._connection.cancel_safe(timeout=_CANCEL_SECONDS_MAX)
        self._connection.close()

    def _push(self) -> None:
        """Until all that is asked has left. The server may have to get rid of something first."""
        while self._server.flush():
            self._poll.modify(self._connection.fileno(), _NEWS | select.POLLOUT)
            if self._wait() & _NEWS:
                self._server.consume_input()
            self._poll.modify(self._connection.fileno(), _NEWS)

    def _next(self) -> PGresult | None:
        while self._server.is_busy():
            self._wait()
            self._server.consume_input()
        return self._server.get_result()

    def _wait(self) -> int:
        """Wait until the connection has something for us, or this thread's deadline has passed; what it has."""
        left = seconds_left()
        events = self._poll.poll(None if left is None else 1000 * left)
        if not events:
            raise no_answer()
        return events[0][1]

    def _first(self) -> PGresult:
        result = self._next()
        if result is None:
            raise psycopg.OperationalError(self._server.get_error_message() or "the server closed the connection")
        return result

    def _check(self, results: list[PGresult]) -> None:
        for result in results:
            if result.status not in (ExecStatus.TUPLES_OK, ExecStatus.COMMAND_OK):
                error = psycopg.errors.error_from_result(result, self._encoding)
                if isinstance(error, psycopg.errors.InvalidSqlStatementName):
                    # Thrown away unseen, by a function of the user's: the next call finds its own again.
                    self.forget()
                raise error from None


class _Context:
    """What a transformer is to know of a connection, which it would keep."""

    def __init__(self, adapters: AdaptersMap, connection: psycopg.Connection[Any]) -> None:
        self._adapters = adapters
        self._connection = connection

    @property
    def adapters(self) -> AdaptersMap:
        return self._adapters

    @property
    def connection(self) -> psycopg.Connection[Any]:
        return self._connection


class _Kept:
    """A statement that is prepared, and how its values are written and its rows read."""

    def __init__(self, name: bytes, hand: abc.Transformer) -> None:
        self.name = name
        self._hand = hand

    def written(self, params: Sequence[Any]) -> Sequence[abc.Buffer | None]:
        return self._hand.dump_sequence(params, [PyFormat.TEXT] * len(params)) if params else ()

    def read(self, result: PGresult) -> list[Row]:
        return _loaded(self._hand, result)


def _loaded(hand: abc.Transformer, result: PGresult) -> list[Row]:
    hand.set_pgresult(result)
    rows = hand.load_rows(0, result.ntuples, tuple)
    hand.set_pgresult(None)
    return rows


def _said(result: PGresult) -> str:
    return (result.command_status or b"").decode()


def _numbered(sql: str) -> bytes:
    """The statement with $1, $2 for its %s, as the server numbers them. Our own statements have no other %."""
    parts = sql.split("%s")
    return ("".join(f"{part}${place}" for place, part in enumerate(parts[:-1], 1)) + parts[-1]).encode()
