"""The marker: one row for each job that was committed in a database that is not Detent's.

The row is inserted first, so that two attempts at one job cannot both continue, and completed last. `job_id` and
`nonce` identify a job among the jobs of all Detent databases, also of one that was restored from a backup. A row may be
deleted once its job has ended and will not be retried.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from detent.errors import DetentError, MarkerMissing, WrongPlace
from detent.model.records import Commit as Mark
from detent.model.records import EffectBegun, NewJob
from detent.store.commit_block_rules import numbered
from detent.store.contract import Store
from detent.store.user_database.connection import (
    Call,
    Commit,
    Dialect,
    ForeignConnection,
    Inside,
    RollBack,
    Run,
    Steps,
    drive,
    same_file,
    wrap_connection,
)

__all__ = [
    "DDL",
    "Found",
    "create_table",
    "enter",
    "enter_own",
    "is_own",
    "leave",
    "leave_own",
    "roll_back",
]

_TABLE: dict[Dialect, str] = {"postgres": "detent_foreign.marker", "sqlite": "detent_marker"}
DDL: dict[Dialect, str] = {
    "postgres": """CREATE SCHEMA IF NOT EXISTS detent_foreign;
CREATE TABLE IF NOT EXISTS detent_foreign.marker (
  job_id  bigint      NOT NULL,
  nonce   bigint      NOT NULL,
  attempt integer     NOT NULL,
  result  text,
  intents text,
  at      timestamptz NOT NULL DEFAULT clock_timestamp(),
  CONSTRAINT detent_marker_pkey PRIMARY KEY (job_id, nonce)
);
""",
    "sqlite": """CREATE TABLE IF NOT EXISTS detent_marker (
  job_id  INTEGER NOT NULL,
  nonce   INTEGER NOT NULL,
  attempt INTEGER NOT NULL,
  result  TEXT,
  intents TEXT,
  at      TEXT    NOT NULL DEFAULT CURRENT_TIMESTAMP,
  CONSTRAINT detent_marker_pkey PRIMARY KEY (job_id, nonce)
) STRICT, WITHOUT ROWID;
""",
}
_IS_THERE: dict[Dialect, str] = {
    "postgres": "SELECT to_regclass('detent_foreign.marker') IS NOT NULL",
    "sqlite": "SELECT count(*) FROM main.sqlite_master WHERE type = 'table' AND name = 'detent_marker'",
}
_SET_TIMEOUTS = """
SELECT current_setting('lock_timeout'), set_config('lock_timeout', '10s', true),
       set_config('idle_in_transaction_session_timeout',
                  CASE current_setting('idle_in_transaction_session_timeout') WHEN '0' THEN '300s'
                       ELSE current_setting('idle_in_transaction_session_timeout') END, true)
"""
_RESTORE_LOCK_TIMEOUT = "SELECT set_config('lock_timeout', :was, true)"
_INSERT = """
INSERT INTO {table} (job_id, nonce, attempt) VALUES (:job_id, :nonce, :attempt) ON CONFLICT (job_id, nonce) DO NOTHING
"""
_COMPLETE = """
UPDATE {table} SET result = :result, intents = :intents WHERE job_id = :job_id AND nonce = :nonce AND attempt = :attempt
"""
_READ = "SELECT attempt, result, intents FROM {table} WHERE job_id = :job_id AND nonce = :nonce"


class Found(NamedTuple):
    """What an earlier attempt has committed there."""

    attempt: int
    result: str | None
    intents: tuple[NewJob, ...]


def is_own(connection: ForeignConnection, store: Store) -> Steps[bool]:
    """Return whether the connection leads to Detent's own database."""
    kind, which = store.whereabouts
    if kind != connection.dialect:
        return False
    if kind == "sqlite":
        return same_file(connection.path(), which())
    from detent.store.postgres.server import WHICH

    here = yield Call(which)
    rows, _ = yield Run(WHICH)
    return bool(rows[0][0] == here)


def create_table(given: Any) -> None:
    """Create the table if it is missing, on a plain connection, and commit. Raises `WrongPlace`."""
    connection = wrap_connection(given)
    if connection.is_async:
        raise WrongPlace("app.prepare_foreign", "with an async connection", "give a plain one; it is done once")
    drive(_create_table(connection), connection)


def _create_table(connection: ForeignConnection) -> Steps[None]:
    if begin := connection.begin_sql():
        yield Run(begin)
    rows, _ = yield Run(_IS_THERE[connection.dialect])
    if not rows[0][0]:
        for statement in DDL[connection.dialect].split(";\n"):
            if statement.strip():
                yield Run(statement)
    yield Commit()


def enter(connection: ForeignConnection, store: Store, job_id: int, attempt: int) -> Steps[Found | EffectBegun]:
    """Record here that a block there begins, then insert the marker there. If an earlier attempt has committed there,
    return what it committed, and leave no transaction open. Raises `MarkerMissing`, `LeaseLost`, `AlreadyCommitted`."""
    try:
        rows, _ = yield Run(_IS_THERE[connection.dialect])
        if not rows[0][0]:
            raise MarkerMissing(_TABLE[connection.dialect], DDL[connection.dialect])
        begun: EffectBegun | DetentError = yield Call(lambda: store.effect_begin(job_id, attempt, "marker"))
        if isinstance(begun, DetentError):
            raise begun
        if begin := connection.begin_sql():
            yield from _run_own(connection, Run(begin))
        was = None
        if connection.dialect == "postgres":
            rows, _ = yield Run(_SET_TIMEOUTS)
            was = rows[0][0]
        put = Run(_with_table(connection, _INSERT), {"job_id": job_id, "nonce": begun.nonce, "attempt": attempt})
        _, new = yield from _run_own(connection, put)
        if new:
            if was is not None:
                yield Run(_RESTORE_LOCK_TIMEOUT, {"was": was})
            return begun
        rows, _ = yield Run(_with_table(connection, _READ), {"job_id": job_id, "nonce": begun.nonce})
    except BaseException:
        yield from roll_back()
        raise
    yield RollBack()
    by, result, intents = rows[0]
    return Found(by, result, tuple(msgspec.json.decode(intents, type=list[NewJob])) if intents else ())


def leave(
    connection: ForeignConnection, store: Store, begun: EffectBegun, result: str | None, intents: Sequence[NewJob]
) -> Steps[Mark]:
    """Complete the marker and commit there. Return the mark to write here. Raises `LeaseLost` if the lease is gone,
    and rolls back there. Raises `OutcomeUnknown` if the answer to the commit was lost: the next attempt finds out."""
    try:
        (holds,) = yield Call(lambda: store.job_start([(begun.job_id, begun.attempt)]))
        if isinstance(holds, DetentError):
            raise holds
        with_ids = yield Call(lambda: numbered(intents, store.ids_reserve))
        text = msgspec.json.encode(with_ids).decode() if with_ids else None
        key = {"job_id": begun.job_id, "nonce": begun.nonce, "attempt": begun.attempt}
        _, completed = yield Run(_with_table(connection, _COMPLETE), {**key, "result": result, "intents": text})
        if completed != 1:
            raise WrongPlace("COMMIT or ROLLBACK", "inside a commit block", "the block ends its transaction by itself")
        yield Commit()
    except BaseException:
        yield from roll_back()
        raise
    return Mark(job_id=begun.job_id, attempt=begun.attempt, result=result, intents=with_ids)


def enter_own(connection: ForeignConnection, store: Store, job_id: int, attempt: int) -> Steps[None]:
    """Open a transaction on the user's connection to Detent's own database, and check the lease."""
    asked = [(job_id, attempt)]
    try:
        if begin := connection.begin_sql():
            yield from _run_own(connection, Run(begin))
        if store.ids_by_transaction:
            (holds,) = yield Inside(lambda: store.on(connection.given).job_start(asked), _never)
        else:
            (holds,) = yield Call(lambda: store.job_start(asked))
        if isinstance(holds, DetentError):
            raise holds
    except BaseException:
        yield from roll_back()
        raise


def leave_own(
    connection: ForeignConnection,
    store: Store,
    job_id: int,
    attempt: int,
    result: str | None,
    intents: Sequence[NewJob],
) -> Steps[None]:
    """Write the mark as the last statement of the user's transaction, and commit. Raises `LeaseLost`,
    `AlreadyCommitted`."""
    try:
        if store.ids_by_transaction:
            with_ids = yield Inside(lambda: numbered(intents, store.on(connection.given).ids_reserve), _never)
        else:
            with_ids = yield Call(lambda: numbered(intents, store.ids_reserve))
        mark = Mark(job_id=job_id, attempt=attempt, result=result, intents=with_ids)
        answer = yield Inside(
            lambda: store.on(connection.given).job_commit(mark),
            lambda: store.on_async(connection.given).job_commit(mark),
        )
        if isinstance(answer, DetentError):
            raise answer
        yield Commit()
    except BaseException:
        yield from roll_back()
        raise


async def _never() -> Any:
    raise AssertionError("a database with a single writer has no async connections")


def roll_back() -> Steps[None]:
    """Roll back. Errors are ignored: the caller raises the original one."""
    try:
        yield RollBack()
    except Exception:
        return


def _run_own(connection: ForeignConnection, run: Run) -> Steps[Any]:
    """Run a statement of Detent's. Errors of the environment become Detent's own, so that they use up no attempt."""
    try:
        return (yield run)
    except Exception as error:
        own = connection.translated(error, committing=False)
        if own is error:
            raise
        raise own from error


def _with_table(connection: ForeignConnection, sql: str) -> str:
    return sql.format(table=_TABLE[connection.dialect])
