"""Short statements, sent straight through libpq.

A psycopg cursor costs several times as much as a short statement itself. Here the prepared statement and the adapters
for its parameters and rows are kept for the next call.
"""

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

__all__ = ["DirectStatements"]

Row = tuple[Any, ...]

PREPARED_MAX = 200
"""Maximum number of prepared statements per connection; the oldest is dropped first."""

_CANCEL_SECONDS_MAX = 2.0
_VERB = re.compile(r"detent\.\w+_v\d+\(")


class DirectStatements:
    """The statements of one connection, which has one user at a time. Not for connections through a pooler: a prepared
    statement must still exist at the next call."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        # The connection refers to this object. A cycle would keep a lost connection alive, and the pool counts it.
        self._connection: psycopg.Connection[Any] = proxy(connection)
        self._context = _Context(connection.adapters, self._connection)
        self._server = connection.pgconn
        self._encoding = connection.info.encoding
        self._count = 0
        self._poll = select.poll()
        self._poll.register(connection.fileno(), select.POLLIN)
        self.forget_prepared()

    def forget_prepared(self) -> None:
        """Prepare every statement anew: the session was changed, and its statements may be gone."""
        self._prepared: dict[str, _Prepared] = {}
        self._transformer: abc.Transformer = Transformer(self._context)

    def fetch(self, sql: str, params: Sequence[Any] = ()) -> list[Row]:
        """Run a statement of Detent's own, with %s placeholders. Return its rows."""
        prepared = self._prepare(sql)
        return prepared.load(self._round_trip(self._call(prepared, params))[0])

    def prepare_fetch(self, sql: str, params: Sequence[Any]) -> Callable[[], list[Row]]:
        """Do everything but send the statement. The function returned sends it and returns its rows."""
        prepared = self._prepare(sql)
        call = self._call(prepared, params)
        return lambda: prepared.load(self._round_trip(call)[0])

    def send(self, sql: str, params: Sequence[Any]) -> Callable[[], list[Row]] | None:
        """Send a statement without waiting. The function returned waits for its rows. None if nothing was sent because
        the statement has to be prepared first."""
        if (prepared := self._prepared.get(sql)) is None:
            return None
        self._send(self._call(prepared, params))
        return lambda: prepared.load(self._receive(1)[0])

    def begin_with(self, sql: str, params: Sequence[Any]) -> list[Row]:
        """Run BEGIN and a statement of Detent's own in one round trip."""
        prepared = self._prepare(sql)
        return prepared.load(self._round_trip(self._command(b"BEGIN"), self._call(prepared, params))[1])

    def fetch_two(
        self, first: tuple[str, Sequence[Any]], second: tuple[str, Sequence[Any]]
    ) -> tuple[list[Row], list[Row]]:
        """Run two statements of Detent's own in one round trip. Return the rows of each. If the first fails, the second
        is not run."""
        prepared = [self._prepare(sql) for sql, _ in (first, second)]
        calls = [self._call(one, params) for one, (_, params) in zip(prepared, (first, second), strict=True)]
        one, other = self._round_trip(*calls)
        return prepared[0].load(one), prepared[1].load(other)

    def commit(self) -> str:
        """Run COMMIT. Return its command tag."""
        return _command_tag(self._round_trip(self._command(b"COMMIT"))[0])

    def commit_with(self, sql: str, params: Sequence[Any]) -> str:
        """Run a statement of Detent's own and COMMIT in one round trip. Return the command tag of the COMMIT, which is
        not run if the statement fails."""
        return _command_tag(self._round_trip(self._call(self._prepare(sql), params), self._command(b"COMMIT"))[1])

    def execute(self, sql: bytes, params: Sequence[Any]) -> tuple[list[Row], int, str]:
        """Run a statement of the user's, with placeholders $1, $2, as psycopg would send it. Return its rows, how many
        it read or changed, and its command tag."""
        transformer = self._transformer
        values = transformer.dump_sequence(params, [PyFormat.AUTO] * len(params))
        send = partial(self._server.send_query_params, sql, values, transformer.types, transformer.formats)
        [result] = self._round_trip(send)
        return _load(transformer, result), result.command_tuples or 0, _command_tag(result)

    def _prepare(self, sql: str) -> _Prepared:
        if (prepared := self._prepared.get(sql)) is not None:
            return prepared
        if len(self._prepared) >= PREPARED_MAX:
            oldest = self._prepared.pop(next(iter(self._prepared)))
            self._connection.execute(SQL("DEALLOCATE {}").format(Identifier(oldest.name.decode())))
        self._count += 1
        verb = _VERB.search(sql)
        prepared = _Prepared(f"{self._count} {verb[0] if verb else sql[:20]}".encode(), Transformer(self._context))
        self._round_trip(partial(self._server.send_prepare, prepared.name, _with_numbers(sql)))
        self._prepared[sql] = prepared
        return prepared

    def _call(self, prepared: _Prepared, params: Sequence[Any]) -> Callable[[], None]:
        return partial(self._server.send_query_prepared, prepared.name, prepared.dump(params))

    def _command(self, command: bytes) -> Callable[[], None]:
        return partial(self._server.send_query_params, command, None)

    def _round_trip(self, *sends: Callable[[], None]) -> list[PGresult]:
        """Send all, then wait for their results. After one has failed, the server skips the rest. Raises the first
        error."""
        self._send(*sends)
        return self._receive(len(sends))

    def _send(self, *sends: Callable[[], None]) -> None:
        """Send without waiting. `_receive` flushes what the socket does not take now."""
        try:
            if pipelined := len(sends) > 1:
                self._server.enter_pipeline_mode()
            for send in sends:
                send()
            if pipelined:
                self._server.pipeline_sync()
        except BaseException as error:
            self._abandon(error)
            raise

    def _receive(self, count: int) -> list[PGresult]:
        results: list[PGresult] = []
        try:
            self._flush()
            for _ in range(count):
                results.append(self._first_result())
                self._next_result()
            if count > 1:
                self._next_result()
                self._server.exit_pipeline_mode()
        except BaseException as error:
            self._abandon(error)
            # Before a server ends a connection it says why.
            self._check(results)
            raise
        self._check(results)
        return results

    def _abandon(self, error: BaseException) -> None:
        """Close the connection, so that no later caller reads the answer. After an interrupt, cancel the statement."""
        if not isinstance(error, psycopg.Error):
            with suppress(psycopg.Error):
                self._connection.cancel_safe(timeout=_CANCEL_SECONDS_MAX)
        self._connection.close()

    def _flush(self) -> None:
        """Send all that is buffered. The server may have to send something first."""
        while self._server.flush():
            self._poll.modify(self._connection.fileno(), select.POLLIN | select.POLLOUT)
            if self._wait() & select.POLLIN:
                self._server.consume_input()
            self._poll.modify(self._connection.fileno(), select.POLLIN)

    def _next_result(self) -> PGresult | None:
        while self._server.is_busy():
            self._wait()
            self._server.consume_input()
        return self._server.get_result()

    def _wait(self) -> int:
        """Wait until the socket is ready or this thread's deadline has passed. Return the poll events."""
        left = seconds_left()
        events = self._poll.poll(None if left is None else 1000 * left)
        if not events:
            raise no_answer()
        return events[0][1]

    def _first_result(self) -> PGresult:
        result = self._next_result()
        if result is None:
            raise psycopg.OperationalError(self._server.get_error_message() or "the server closed the connection")
        return result

    def _check(self, results: list[PGresult]) -> None:
        for result in results:
            if result.status not in (ExecStatus.TUPLES_OK, ExecStatus.COMMAND_OK):
                error = psycopg.errors.error_from_result(result, self._encoding)
                if isinstance(error, psycopg.errors.InvalidSqlStatementName):
                    # A function of the user's deallocated it. The next call prepares it again.
                    self.forget_prepared()
                raise error from None


class _Context:
    """What a transformer needs of a connection, without a strong reference to it."""

    def __init__(self, adapters: AdaptersMap, connection: psycopg.Connection[Any]) -> None:
        self._adapters = adapters
        self._connection = connection

    @property
    def adapters(self) -> AdaptersMap:
        return self._adapters

    @property
    def connection(self) -> psycopg.Connection[Any]:
        return self._connection


class _Prepared:
    """A prepared statement, with the adapters for its parameters and rows."""

    def __init__(self, name: bytes, transformer: abc.Transformer) -> None:
        self.name = name
        self._transformer = transformer

    def dump(self, params: Sequence[Any]) -> Sequence[abc.Buffer | None]:
        return self._transformer.dump_sequence(params, [PyFormat.TEXT] * len(params)) if params else ()

    def load(self, result: PGresult) -> list[Row]:
        return _load(self._transformer, result)


def _load(transformer: abc.Transformer, result: PGresult) -> list[Row]:
    transformer.set_pgresult(result)
    rows = transformer.load_rows(0, result.ntuples, tuple)
    transformer.set_pgresult(None)
    return rows


def _command_tag(result: PGresult) -> str:
    return (result.command_status or b"").decode()


def _with_numbers(sql: str) -> bytes:
    """Return the statement with $1, $2 for each %s. Detent's own statements have no other %."""
    parts = sql.split("%s")
    return ("".join(f"{part}${number}" for number, part in enumerate(parts[:-1], 1)) + parts[-1]).encode()
