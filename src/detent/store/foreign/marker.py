"""The marker: one row for each job that was committed in a database that is not Detent's.

It is written first, so that two attempts at one job cannot both go on, and completed last. `job_id` and `nonce` tell a
job from every job of every other Detent, also of one that was restored from a copy. A row may go when its job has
ended and will not be retried.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from detent.errors import DetentError, MarkerMissing, WrongPlace
from detent.model.records import Commit as Mark
from detent.model.records import EffectBegun, NewJob
from detent.store.contract import Store
from detent.store.foreign.driver import (
    Call,
    Commit,
    Dialect,
    Hand,
    Inside,
    RollBack,
    Run,
    Steps,
    drive,
    hand_over,
    same_file,
)
from detent.store.intents import numbered

__all__ = [
    "DDL",
    "Found",
    "entering",
    "entering_own",
    "is_own",
    "leaving",
    "leaving_own",
    "prepare",
    "rolling_back",
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
_BOUNDS = """
SELECT current_setting('lock_timeout'), set_config('lock_timeout', '10s', true),
       set_config('idle_in_transaction_session_timeout',
                  CASE current_setting('idle_in_transaction_session_timeout') WHEN '0' THEN '300s'
                       ELSE current_setting('idle_in_transaction_session_timeout') END, true)
"""
_BOUND_AS_BEFORE = "SELECT set_config('lock_timeout', :was, true)"
_PUT = """
INSERT INTO {table} (job_id, nonce, attempt) VALUES (:job_id, :nonce, :attempt) ON CONFLICT (job_id, nonce) DO NOTHING
"""
_COMPLETE = """
UPDATE {table} SET result = :result, intents = :intents WHERE job_id = :job_id AND nonce = :nonce AND attempt = :attempt
"""
_READ = "SELECT attempt, result, intents FROM {table} WHERE job_id = :job_id AND nonce = :nonce"


class Found(NamedTuple):
    """An earlier attempt has committed there: with this result and these intents."""

    attempt: int
    result: str | None
    intents: tuple[NewJob, ...]


def is_own(hand: Hand, store: Store) -> Steps[bool]:
    """Whether the connection leads to Detent's own database."""
    kind, which = store.whereabouts
    if kind != hand.dialect:
        return False
    if kind == "sqlite":
        return same_file(hand.path(), which())
    from detent.store.postgres.statements.waking import WHICH

    here = yield Call(which)
    rows, _ = yield Run(WHICH)
    return bool(rows[0][0] == here)


def prepare(connection: Any) -> None:
    """Create the table where it is missing, on a plain connection, and commit. `WrongPlace`."""
    hand = hand_over(connection)
    if hand.is_async:
        raise WrongPlace("app.prepare_foreign", "with an async connection", "give a plain one; it is done once")
    drive(_preparing(hand), hand)


def _preparing(hand: Hand) -> Steps[None]:
    if begin := hand.begin_sql():
        yield Run(begin)
    rows, _ = yield Run(_IS_THERE[hand.dialect])
    if not rows[0][0]:
        for statement in DDL[hand.dialect].split(";\n"):
            if statement.strip():
                yield Run(statement)
    yield Commit()


def entering(hand: Hand, store: Store, job_id: int, attempt: int) -> Steps[Found | EffectBegun]:
    """The marker first: on record here that a block there is entered, then the row there. What an earlier attempt has
    committed is found, and nothing stays open then. `MarkerMissing`, `LeaseLost`, `AlreadyCommitted`."""
    try:
        rows, _ = yield Run(_IS_THERE[hand.dialect])
        if not rows[0][0]:
            raise MarkerMissing(_TABLE[hand.dialect], DDL[hand.dialect])
        begun: EffectBegun | DetentError = yield Call(lambda: store.effect_begin(job_id, attempt, "marker"))
        if isinstance(begun, DetentError):
            raise begun
        if begin := hand.begin_sql():
            yield from _engines(hand, Run(begin))
        was = None
        if hand.dialect == "postgres":
            rows, _ = yield Run(_BOUNDS)
            was = rows[0][0]
        put = Run(_of(hand, _PUT), {"job_id": job_id, "nonce": begun.nonce, "attempt": attempt})
        _, new = yield from _engines(hand, put)
        if new:
            if was is not None:
                yield Run(_BOUND_AS_BEFORE, {"was": was})
            return begun
        rows, _ = yield Run(_of(hand, _READ), {"job_id": job_id, "nonce": begun.nonce})
    except BaseException:
        yield from rolling_back()
        raise
    yield RollBack()
    by, result, intents = rows[0]
    return Found(by, result, tuple(msgspec.json.decode(intents, type=list[NewJob])) if intents else ())


def leaving(hand: Hand, store: Store, begun: EffectBegun, result: str | None, intents: Sequence[NewJob]) -> Steps[Mark]:
    """Complete the marker and commit there; what is to be marked here. `LeaseLost` where the lease is gone, and then
    nothing stays there. `OutcomeUnknown` where the answer of the commit was lost: the next attempt will find out."""
    try:
        (holds,) = yield Call(lambda: store.job_start([(begun.job_id, begun.attempt)]))
        if isinstance(holds, DetentError):
            raise holds
        with_ids = yield Call(lambda: numbered(intents, store.ids_reserve))
        text = msgspec.json.encode(with_ids).decode() if with_ids else None
        key = {"job_id": begun.job_id, "nonce": begun.nonce, "attempt": begun.attempt}
        _, completed = yield Run(_of(hand, _COMPLETE), {**key, "result": result, "intents": text})
        if completed != 1:
            raise WrongPlace("COMMIT or ROLLBACK", "inside a commit block", "the block ends its transaction by itself")
        yield Commit()
    except BaseException:
        yield from rolling_back()
        raise
    return Mark(job_id=begun.job_id, attempt=begun.attempt, result=result, intents=with_ids)


def entering_own(hand: Hand, store: Store, job_id: int, attempt: int) -> Steps[None]:
    """Detent's own database on the user's connection: the holder is checked, and the transaction is open."""
    asked = [(job_id, attempt)]
    try:
        if begin := hand.begin_sql():
            yield from _engines(hand, Run(begin))
        if store.ids_by_transaction:
            (holds,) = yield Inside(lambda: store.on(hand.given).job_start(asked), _never)
        else:
            (holds,) = yield Call(lambda: store.job_start(asked))
        if isinstance(holds, DetentError):
            raise holds
    except BaseException:
        yield from rolling_back()
        raise


def leaving_own(
    hand: Hand, store: Store, job_id: int, attempt: int, result: str | None, intents: Sequence[NewJob]
) -> Steps[None]:
    """The mark in the user's transaction as its last statement, then the commit. `LeaseLost`, `AlreadyCommitted`."""
    try:
        if store.ids_by_transaction:
            with_ids = yield Inside(lambda: numbered(intents, store.on(hand.given).ids_reserve), _never)
        else:
            with_ids = yield Call(lambda: numbered(intents, store.ids_reserve))
        mark = Mark(job_id=job_id, attempt=attempt, result=result, intents=with_ids)
        answer = yield Inside(
            lambda: store.on(hand.given).job_commit(mark), lambda: store.on_async(hand.given).job_commit(mark)
        )
        if isinstance(answer, DetentError):
            raise answer
        yield Commit()
    except BaseException:
        yield from rolling_back()
        raise


async def _never() -> Any:
    raise AssertionError("a database that keeps all others out has no async connections")


def rolling_back() -> Steps[None]:
    """Whatever was raised is what matters."""
    try:
        yield RollBack()
    except Exception:
        return


def _engines(hand: Hand, run: Run) -> Steps[Any]:
    """A statement of the engine's own: what others did to it is Detent's to say, so that it uses up no attempt."""
    try:
        return (yield run)
    except Exception as error:
        own = hand.translated(error, committing=False)
        if own is error:
            raise
        raise own from error


def _of(hand: Hand, sql: str) -> str:
    return sql.format(table=_TABLE[hand.dialect])
