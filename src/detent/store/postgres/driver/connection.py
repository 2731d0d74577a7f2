"""Detent's own connections to a PostgreSQL server: how one is opened, and what it knows about itself."""

from __future__ import annotations

import logging
import math
import select
from typing import Any, TypeVar

import psycopg
from psycopg.abc import PQGen
from psycopg.conninfo import conninfo_to_dict
from psycopg.errors import Diagnostic
from psycopg.pq import TransactionStatus
from psycopg.rows import TupleRow

from detent.model.clock import SystemClock
from detent.store.postgres.driver.deadline import no_answer, seconds_left
from detent.store.postgres.driver.direct_statements import DirectStatements
from detent.store.postgres.driver.failures import no_connection

__all__ = ["KEEPALIVE_OPTIONS", "READ_ONLY_SECONDS_MAX", "Connection", "OwnConnection", "connection_options"]

Connection = psycopg.Connection[TupleRow]
T = TypeVar("T")

AGE_SECONDS_MAX = 3600.0
"""A server process keeps what it has read once, and grows. And if servers share the load, only new connections reach
a server that was added."""

READ_ONLY_SECONDS_MAX = 5.0
"""Seconds for which a connection to a read-only server is used. A new connection may reach the new primary."""

CONNECT_SECONDS_MAX = 10

KEEPALIVE_OPTIONS: dict[str, int] = {
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}
"""A server that disappears is given up after ten seconds instead of the operating system's 15 minutes. Options in the
URL take precedence."""

_CLOCK = SystemClock()
_SIGNAL_INTERVAL = 0.1
_LIMIT_NOTICE = "DT010"
"""SQLSTATE of notices about limits."""


class OwnConnection(psycopg.Connection[TupleRow]):
    """A connection that Detent opened, as opposed to one that the user passed in.

    `direct` sends statements straight through libpq. It is None behind a pooler.
    """

    direct: DirectStatements | None = None
    incoming: select.poll
    opened_at = 0.0

    @classmethod
    def open(cls, url: str, name: str, options: dict[str, Any]) -> OwnConnection:
        """Connect within this thread's deadline. Raises `DatabaseUnreachable` or `DatabaseInaccessible`."""
        if "connect_timeout" in options and (left := seconds_left()) is not None:
            options = {**options, "connect_timeout": min(options["connect_timeout"], math.ceil(left))}
        try:
            connection = cls.connect(url, **options)
            connection.add_notice_handler(_log_notice)
            # A pooler reports a process number of its own, which differs from the server's.
            found = connection.execute("SELECT pg_backend_pid()").fetchone()
        except psycopg.Error as error:
            raise no_connection(error, name) from error
        if found == (connection.info.backend_pid,):
            connection.direct = DirectStatements(connection)
        connection.incoming = select.poll()
        connection.incoming.register(connection.fileno(), select.POLLIN)
        connection.opened_at = _CLOCK.monotonic()
        return connection

    def wait(self, gen: PQGen[T], interval: float = _SIGNAL_INTERVAL, timeout: float | None = None) -> T:
        """Wait for the server, but no longer than this thread's deadline. A connection that misses it is closed."""
        if timeout is None and (timeout := seconds_left()) is not None:
            try:
                return super().wait(gen, interval, timeout)
            except psycopg.errors._WaitTimeout:
                self.close()
                raise no_answer() from None
        return super().wait(gen, interval, timeout)

    def forget_prepared(self) -> None:
        """Prepare statements anew: the user may have changed the session, and the prepared ones may be gone."""
        if self.direct is not None:
            self.direct.forget_prepared()

    def is_quiet(self) -> bool:
        """Return whether the connection is open and has nothing to read. If a server goes away, there is something."""
        return not self.closed and not self.incoming.poll(0)

    def is_alive(self) -> bool:
        """Return whether the connection still works, by reading what has arrived."""
        if not self.is_quiet() and not self.closed:
            try:
                self.execute("")
            except psycopg.Error:
                self.close()
        return not self.closed

    def reset(self) -> None:
        """Roll back an open transaction. Close the connection if that is not possible."""
        status = self.pgconn.transaction_status
        if status in (TransactionStatus.INTRANS, TransactionStatus.INERROR):
            try:
                self.rollback()
            except psycopg.Error:
                self.close()
        elif status != TransactionStatus.IDLE:
            self.close()

    def is_expired(self, now: float) -> bool:
        """Return whether the connection is closed or older than its maximum age."""
        return self.closed or now > self.opened_at + AGE_SECONDS_MAX

    def is_read_only(self, now: float) -> bool:
        """Return whether the server takes no writes and the connection is not new. PostgreSQL reports this with its
        answers, before a statement fails. A transaction pooler does not pass it on."""
        if self.closed or now < self.opened_at + READ_ONLY_SECONDS_MAX:
            return False
        status = self.pgconn.parameter_status
        return status(b"in_hot_standby") == b"on" or status(b"default_transaction_read_only") == b"on"

    def __del__(self, *_: Any) -> None:
        """Let libpq close a lost connection without psycopg's ResourceWarning."""


def connection_options(url: str) -> dict[str, Any]:
    """Return the options for `OwnConnection.open`. Options in the URL take precedence."""
    given = conninfo_to_dict(url)
    defaults: dict[str, Any] = {**KEEPALIVE_OPTIONS, "connect_timeout": CONNECT_SECONDS_MAX}
    options: dict[str, Any] = {"autocommit": True, "prepare_threshold": None}
    options |= {name: value for name, value in defaults.items() if name not in given}
    if "application_name" not in given:
        options["fallback_application_name"] = "detent"
    return options


def _log_notice(notice: Diagnostic) -> None:
    if notice.sqlstate == _LIMIT_NOTICE:
        level = logging.WARNING if notice.severity_nonlocalized == "WARNING" else logging.INFO
        logging.getLogger("detent.limits").log(level, "%s", notice.message_primary)
