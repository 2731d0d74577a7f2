"""The record in one SQLite file."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, Unpack

from detent.errors import DatabaseBusy, DetentError, SchemaMissing, WrongPlace
from detent.lifecycle.definition import Lifecycle
from detent.model.clock import Clock, to_micros
from detent.model.database_facts import Facts, LogGrowth, Space
from detent.model.records import Claimed, Enqueued, Finish, Finished, Moved, NewJob, RepairStep, Violation
from detent.model.service_records import IdentityRow, WalkPlace, WalkStep
from detent.model.workflow_records import NewSignal, SignalSent
from detent.store.contract import AsyncVerbs, Tx, Verbs
from detent.store.entities.sqlite import attach, attached_versions
from detent.store.installed_release import is_newer, refuse_if_newer
from detent.store.invariants.sqlite import violations
from detent.store.invariants.stepwise_check import step
from detent.store.jobs.contract import ClaimTerms
from detent.store.jobs.identities import Identities
from detent.store.limits.sqlite_lanes import Reached
from detent.store.migrate import Applied
from detent.store.repair.apply import repair
from detent.store.repair.sqlite import SqliteRepair
from detent.store.sqlite import schema
from detent.store.sqlite.caller_connection import CallersVerbs
from detent.store.sqlite.commit_block import CommitBlock, HoldersBlock
from detent.store.sqlite.driver.database import Database
from detent.store.sqlite.driver.executor import SqliteExecutor
from detent.store.sqlite.driver.failures import unstorable, values_checked
from detent.store.sqlite.driver.long_reads import LongReads
from detent.store.sqlite.driver.wake_signal import WakeSignal
from detent.store.sqlite.driver.write_connection import WriteConnection
from detent.store.sqlite.facts import facts
from detent.store.sqlite.installed_parts import installed
from detent.store.sqlite.space import space
from detent.store.sqlite.verb_base import ids_json
from detent.store.sqlite.verbs import EachAlone, SqliteVerbs
from detent.store.sqlite.wake import SqliteWake
from detent.store.workflows.signing_key import checked_key

if TYPE_CHECKING:
    from detent.store.move.sqlite_database import MovableSqlite

__all__ = ["SqliteStore"]

T = TypeVar("T")

_IS_WORK = "SELECT EXISTS (SELECT 1 FROM detent_ready)"
_CLAIMS_MAX = 4
"""Maximum number of transactions in one claim; each skips lanes without room."""


class SqliteStore(EachAlone):
    """Every verb is a write transaction of its own, synced when it returns. Reading never waits for writers.

    Nothing is touched before the first use. `path` may be ":memory:", which is this store's alone. Safe from any thread
    and across forks; a call waits for locks at most `wait_seconds_max` in all, then `DatabaseBusy`.
    """

    def __init__(self, path: str, *, clock: Clock, wait_seconds_max: float = 10.0) -> None:
        self._clock = clock
        self._file = Database(path, wait_seconds_max=wait_seconds_max)
        self._signing_key: bytes | None = None
        self._identities = Identities(lambda: self.name, self.identity_list)
        self._reached = Reached()
        self._wake = SqliteWake(self._file.version, self._is_work, WakeSignal(self._file.path))
        self._long_reads = LongReads()

    @property
    def name(self) -> str:
        """The database for messages."""
        return self._file.name

    @property
    def wake(self) -> SqliteWake:
        """Through a signal between processes, and the version of the file."""
        return self._wake

    def identity_of(self, number: int) -> str:
        """Read by `ready`."""
        return self._identities.of(number)

    def signing_key(self) -> bytes:
        """Read at first use."""
        if self._signing_key is None:
            self._signing_key = checked_key(self.signal_key(), self.name)
        return self._signing_key

    def identity_renew(self, actor: str, reason: str | None = None) -> IdentityRow:
        """This store uses the new identity from now on."""
        made = EachAlone.identity_renew(self, actor, reason)
        self._identities.forget()
        return made

    def ready(self, *, create: bool = True) -> None:
        """Create the file and the schema if there is none; otherwise only check it."""
        if create:
            self._file.create_file()
        with self._as_found() as (connection, applied):
            if connection is not None and applied:
                schema.look(connection, self.name, applied)
        if not applied and create:
            self.migrate()
        elif not applied:
            found = "there is no such file" if connection is None else "the file has no Detent schema"
            raise SchemaMissing(self.name, f"{found}; `detent migrate` makes it")
        self._identities.load()

    def migrate(self, watch: Callable[[str], None] = lambda _: None) -> list[str]:
        """In one write transaction. A second migrator finds nothing to do."""
        with self._as_found() as (found, applied):
            if found is not None:
                # Before the first write, which would leave files beside this one.
                schema.refuse(found, self.name, applied)
        self._file.create_file()
        with self._file.writing() as connection:
            return schema.migrate(connection, self._clock, self.name, watch)

    def migration_sql(self) -> str:
        """The whole schema, if there is no file yet."""
        with self._as_found() as (connection, applied):
            return schema.script(connection, self.name, applied)

    def facts(self) -> Facts:
        """The settings of the file, if there is one, and of the library."""
        with self._as_found() as (connection, applied):
            return facts(connection, applied)

    def log_growth(self) -> LogGrowth | None:
        """None in memory."""
        return self._file.log_growth()

    def space(self) -> Space | None:
        """The file, and the disk that it is on."""
        if self._file.path is None or not self._file.is_there():
            return None
        with self._file.reading() as connection:
            return space(connection, self._file.path)

    def movable(self) -> MovableSqlite:
        """The file."""
        from detent.store.move.sqlite_database import MovableSqlite

        return MovableSqlite(self._file, self._clock)

    def back_up(
        self, target: str, *, force: bool = False, watch: Callable[[int, int], None] = lambda _done, _total: None
    ) -> list[Violation]:
        """On one snapshot, which does not block writers. Until it ends, the write-ahead log is not shortened."""
        from detent.store.sqlite.backup import back_up

        if self._file.in_memory:
            raise WrongPlace("back_up", "on a database in memory", "use a file")

        def check(path: str) -> list[Violation]:
            copy = SqliteStore(path, clock=self._clock)
            try:
                return copy.verify()
            finally:
                copy.close()

        with self._file.reading() as connection, self._long_reads.register(connection):
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()  # the snapshot begins here
            return back_up(connection, target, check, force=force, watch=watch)

    def install_roles(self) -> None:
        """Raises `WrongPlace`: a file has no roles."""
        raise WrongPlace("install_roles", "on SQLite", "who may read and write the file is its file system's to say")

    @contextmanager
    def _as_found(self) -> Iterator[tuple[sqlite3.Connection | None, dict[int, Applied]]]:
        """Open a read-only connection if there is a file. Creates nothing."""
        if not self._file.is_there():
            yield None, {}
            return
        with self._file.reading() as connection:
            yield connection, schema.applied_steps(connection)

    def check_thread(self) -> None:
        """Raises `WrongPlace` inside a transaction: this thread would wait for itself."""
        self._file.check_thread()

    def together(self, work: Callable[[Verbs], T]) -> T:
        """There is a single writer, so `work` is never repeated."""
        return self._write(work)

    @property
    def schema_known(self) -> int:
        return schema.KNOWN[-1].version

    @property
    def ids_by_transaction(self) -> bool:
        """True: the caller's transaction blocks all other writers, so its ids come from inside it."""
        return True

    def on(self, connection: Any) -> Verbs:
        """On a connection of sqlite3, or of SQLAlchemy over one."""
        return CallersVerbs(connection, self._clock, self.name)

    def on_async(self, connection: Any) -> AsyncVerbs:
        """sqlite3 has no async connections. Those of SQLAlchemy run sync verbs with their `run_sync`."""
        raise WrongPlace(
            "an async verb on the caller's connection",
            f"with a {type(connection).__module__}.{type(connection).__qualname__} on SQLite",
            "use app.using with a connection of sqlite3, or an AsyncConnection or AsyncSession of SQLAlchemy over "
            "aiosqlite",
        )

    def answering_within(self, seconds: float) -> AbstractContextManager[None]:
        """A no-op: a call has its own limit for all its waits."""
        return nullcontext()

    def up_for(self) -> float | None:
        """None: there is no server."""
        return None

    @property
    def whereabouts(self) -> tuple[str, Callable[[], str | None]]:
        """The file."""
        return "sqlite", lambda: self._file.path

    def guard_entity(self, lifecycle: Lifecycle, table: str, id_column: str, state_column: str) -> None:
        """Install all triggers in one transaction."""
        with self._file.writing() as connection:
            attach(connection, self._now(), self.name, lifecycle, table, id_column, state_column)

    def lifecycle_versions(self) -> dict[str, int]:
        """Empty if there is no file."""
        with self._as_found() as (connection, _):
            return {} if connection is None else attached_versions(connection)

    def commit_block(self, job_id: int, attempt: int) -> AbstractContextManager[Tx]:
        """Blocks take turns. An exception rolls the block back."""
        return CommitBlock(self._file, self._clock, job_id, attempt)

    def holders_block(
        self, job_id: int, attempt: int, leave: Callable[[Verbs], DetentError | Moved]
    ) -> AbstractContextManager[Tx]:
        """Takes turns with commit blocks."""
        return HoldersBlock(self._file, self._clock, job_id, attempt, leave)

    def verify(self, watch: Callable[[int], None] | None = None) -> list[Violation]:
        """Every invariant on one snapshot."""
        with self._file.reading() as connection, self._long_reads.register(connection):
            mine = not is_newer(installed(connection))
            return violations(SqliteExecutor(connection), self._now(), watch, schema=mine)

    def pages_not_checked(self) -> str | None:
        """None: SQLite checks its pages itself."""
        return None

    def verify_step(self, place: WalkPlace, rows_max: int) -> WalkStep:
        """On one snapshot, which does not block writers."""
        with self._file.reading() as connection, self._long_reads.register(connection):
            executor, now = SqliteExecutor(connection), self._now()
            return step(
                "sqlite",
                lambda sql, params: executor.rows_checked(sql, {**params, "now": now}, self.name),
                place,
                rows_max,
                before_all=0,
                listed=ids_json,
                schema=not is_newer(installed(connection)),
            )

    def cancel_reads(self) -> None:
        """Interrupts their statements."""
        self._long_reads.cancel()

    def repair(self, actor: str, reason: str, *, apply: bool = False) -> list[RepairStep]:
        """The plan is made on one snapshot. It is carried out in one write transaction."""
        if apply:
            with self._file.reading() as connection:
                refuse_if_newer(self.name, installed(connection))
            plan = self.repair(actor, reason)
            if not any(step.can for step in plan):
                # A transaction that writes and has met a damaged page cannot be committed.
                return plan
        with self._file.writing() if apply else self._file.reading() as connection, values_checked():
            return repair(SqliteRepair(connection, self._now()), actor, reason, apply=apply)

    def close(self) -> None:
        """Close the file."""
        self._wake.close()
        self._file.close()

    def job_finish(self, items: Sequence[Finish], worker: str) -> list[Finished | DetentError]:
        """While commit blocks are running, share their sync."""
        return self._beside_blocks(lambda verbs: verbs.job_finish(items, worker))

    def job_enqueue(self, items: Sequence[NewJob]) -> list[Enqueued | DetentError]:
        """Wakes the waiting workers."""
        answers = EachAlone.job_enqueue(self, items)
        self._wake.notify()
        return answers

    def signal_send(self, items: Sequence[NewSignal], *, apart: bool = False) -> list[SignalSent | DetentError]:
        """Wakes the waiting workers."""
        answers = EachAlone.signal_send(self, items, apart=apart)
        self._wake.notify()
        return answers

    def job_enqueue_sent(self, items: Sequence[NewJob]) -> None:
        """None: a write to a file cannot be sent without waiting."""

    def job_claim(self, **terms: Unpack[ClaimTerms]) -> list[Claimed]:
        """Claim without a sync: a crash of the machine that loses the claim also ends every process that saw it. Later
        writes go to the same log after it, so their sync includes the claim. The claimed jobs are read after the write
        lock is released."""
        for _ in range(_CLAIMS_MAX):
            ids = self._write(lambda verbs: verbs.claim_take(**terms, reached=self._reached), synced=False)
            if ids or self._reached.after_lane is None:
                break
        return self._read(lambda verbs: verbs.claim_taken(terms["lease_id"], ids)) if ids else []

    def claim_ahead(self, **terms: Unpack[ClaimTerms]) -> Callable[[], list[Claimed]]:
        """There is nothing to prepare."""
        return partial(self.job_claim, **terms)

    def _is_work(self) -> bool:
        with self._file.reading() as connection:
            return bool(connection.execute(_IS_WORK).fetchone()[0])

    def _beside_blocks(self, work: Callable[[SqliteVerbs], T]) -> T:
        """Work in the transaction of the commit blocks that are running. If there are none, or if one of them makes
        the transaction fail, work in a transaction of its own."""
        if self._file.group_commit.busy:
            try:
                with values_checked():
                    return self._file.group_commit.join(
                        lambda executor: work(SqliteVerbs(executor, self._clock, self.name))
                    )
            except DatabaseBusy:
                pass
        return self._write(work)

    def _write(self, work: Callable[[SqliteVerbs], T], *, synced: bool = True) -> T:
        def run(connection: WriteConnection) -> T:
            return work(SqliteVerbs(SqliteExecutor(connection), self._clock, self.name))

        try:
            return self._file.write(run, synced=synced)
        except (UnicodeEncodeError, OverflowError) as error:
            raise unstorable(error) from error

    def _read(self, work: Callable[[SqliteVerbs], T]) -> T:
        with self._file.reading() as connection, values_checked():
            return work(SqliteVerbs(SqliteExecutor(connection), self._clock, self.name))

    def _now(self) -> int:
        return to_micros(self._clock.now(), field="now")
