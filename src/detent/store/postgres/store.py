"""The record in a PostgreSQL database.

What few processes do, such as migrating and repairing, is imported where it is done: every supervisor has a store, and
needs none of it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeVar, Unpack

from detent.errors import DatabaseError, DetentError, SchemaMissing, WrongPlace
from detent.lifecycle.definition import Lifecycle
from detent.model.clock import Clock, SystemClock
from detent.model.database_facts import Facts, LogGrowth, Space
from detent.model.records import Claimed, Enqueued, Moved, NewJob, RepairStep, Violation
from detent.model.service_records import IdentityRow, WalkPlace, WalkStep
from detent.store.contract import AsyncVerbs, EnqueueSent, Tx, Verbs
from detent.store.entities.postgres import attach, attached_versions
from detent.store.invariants.stepwise_check import step
from detent.store.jobs.contract import ClaimTerms
from detent.store.jobs.identities import Identities
from detent.store.jobs.postgres_attempts import commit_check
from detent.store.jobs.postgres_claim import job_claim
from detent.store.jobs.postgres_enqueue import is_plain, job_enqueue_one, lanes_make
from detent.store.postgres.aio import AsyncPostgresVerbs
from detent.store.postgres.commit_block import commit_block, holders_block
from detent.store.postgres.driver.connection import Connection
from detent.store.postgres.driver.connection_pool import ConnectionPool
from detent.store.postgres.driver.deadline import answering_within
from detent.store.postgres.driver.failures import database_name, translating
from detent.store.postgres.driver.lane_memory import ClaimBounds, KnownLanes
from detent.store.postgres.driver.long_reads import LongReads
from detent.store.postgres.driver.session import PoolSession, Session, session_over
from detent.store.postgres.server import up_for, wake_announce, wake_notify, which
from detent.store.postgres.verbs import PostgresVerbs
from detent.store.postgres.wake import PostgresWake
from detent.store.workflows.signing_key import checked_key

if TYPE_CHECKING:
    from detent.store.move.postgres_database import MovablePostgres

__all__ = ["PostgresStore"]

T = TypeVar("T")

# Compare whole tables by hashing or sorting. A planner that expects few rows, because a table has grown since it was
# analysed, would otherwise choose a nested loop over all of it.
WHOLE_TABLES = "SELECT set_config('enable_nestloop', 'off', true), set_config('jit', 'off', true)"
_BRIEFLY = (
    "SELECT set_config('statement_timeout', '5s', true), set_config('max_parallel_workers_per_gather', '0', true)"
)

SETTLE_SECONDS_MAX = 20.0
"""Seconds in which a COMMIT whose answer was lost is looked up; longer than the wait for one lock."""
LOOK_PAUSE_FIRST = 0.1
LOOK_PAUSE_LONGEST = 2.0


class PostgresStore(PostgresVerbs):
    """Every verb is one statement and one round trip, durable when it returns.

    Nothing is touched before the first use. Safe from any thread and across forks, and behind a transaction pooler.
    `clock` only paces; the server's clock decides.
    """

    def __init__(
        self,
        url: str,
        *,
        clock: Clock | None = None,
        connections_max: int = 8,
        wait_seconds_max: float = 30.0,
    ) -> None:
        name = database_name(url)
        self._clock = clock or SystemClock()
        self._pool = ConnectionPool(url, name, size_max=connections_max, wait_seconds_max=wait_seconds_max)
        self._long_reads = LongReads()
        self._signing_key: bytes | None = None
        self._identities = Identities(lambda: self._name, self.identity_list)
        self._pooled = PoolSession(self._pool, name, self._clock, seed=os.getpid())
        self._wake = PostgresWake(self._pool, name, self._announce, lambda: self._session.run(wake_notify()))
        self._lanes_first = KnownLanes(lambda missing: self._pooled.run(lanes_make(missing)))
        super().__init__(self._pooled, name, ClaimBounds(self._clock))

    @property
    def name(self) -> str:
        """The database for messages, without secrets."""
        return self._name

    @property
    def wake(self) -> PostgresWake:
        """Through LISTEN, and a row that says that a worker waits."""
        return self._wake

    def claim_ahead(self, **terms: Unpack[ClaimTerms]) -> Callable[[], list[Claimed]]:
        """Prepare the claim on the listening connection: when a notification arrives, its server process is awake."""
        assert self._bounds is not None
        statement = job_claim({}, self._bounds.after_lane, **terms)
        ask = self._wake.prepare(statement, self._session.run)
        return lambda: self._noted(ask(), terms["limit"])

    def job_enqueue_sent(self, items: Sequence[NewJob]) -> EnqueueSent | None:
        """A single job without a key, if an idle connection has the statement prepared."""
        if len(items) > 1 or not is_plain(items[0]):
            return None
        (item,) = items
        created = self._pooled.send(job_enqueue_one(item, notify=False))
        if created is None:
            return None
        return lambda: self._admitted(items, [Enqueued(item.id, True)]) if created() else self.job_enqueue(items)

    def ready(self, *, create: bool = True) -> None:
        """Create the schema if there is none; otherwise only check it."""
        from detent.store.postgres import schema

        with self._pool.connection() as connection:
            there = schema.look(connection, self._name)
        if not there and not create:
            raise SchemaMissing(self._name, "the database has none; `detent migrate` makes it")
        if not there:
            self.migrate()
        self._identities.load()

    def identity_of(self, number: int) -> str:
        """Read by `ready`."""
        return self._identities.of(number)

    def signing_key(self) -> bytes:
        """Read at first use."""
        if self._signing_key is None:
            self._signing_key = checked_key(self.signal_key(), self._name)
        return self._signing_key

    def identity_renew(self, actor: str, reason: str | None = None) -> IdentityRow:
        """This store uses the new identity from now on."""
        made = super().identity_renew(actor, reason)
        self._identities.forget()
        return made

    def migrate(self, watch: Callable[[str], None] = lambda _: None) -> list[str]:
        """Create a new schema in one transaction; upgrade an existing one in small steps, while jobs run."""
        from detent.store.postgres.create import create
        from detent.store.postgres.upgrade import upgrade

        with closing(self._pool.connect()) as connection:
            created = create(connection, self._name, watch)
            return created or upgrade(connection, self._name, self._clock, watch)

    def migration_sql(self) -> str:
        """Also if only installed parts differ."""
        from detent.store.postgres.create import script
        from detent.store.postgres.schema import applied_steps

        with self._pool.connection() as connection:
            return script(connection, self._name, applied_steps(connection, self._name))

    def facts(self) -> Facts:
        """The settings of the server, as this login sees them."""
        from detent.store.postgres import schema
        from detent.store.postgres.facts import facts

        with self._pool.connection() as connection, translating(self._name):
            return facts(connection, schema.applied_steps(connection, self._name))

    def log_growth(self) -> LogGrowth | None:
        """None: the server manages its own log."""
        return None

    def space(self) -> Space:
        """As the server estimates it. Its disk cannot be seen from here."""
        from detent.store.postgres.space import space

        with self._pool.connection() as connection, translating(self._name):
            return space(connection)

    def movable(self) -> MovablePostgres:
        """The database, for the owner of its tables."""
        from detent.store.move.postgres_database import MovablePostgres

        return MovablePostgres(self._pool, self._name, self._clock)

    def back_up(
        self, target: str, *, force: bool = False, watch: Callable[[int, int], None] = lambda _done, _total: None
    ) -> list[Violation]:
        """Raises `WrongPlace`: the server has its own tools."""
        raise WrongPlace("back_up", "on PostgreSQL", "use pg_dump or pg_basebackup (docs/backup.md)")

    def install_roles(self) -> None:
        """Create the group roles, with the rights of the catalogue. The caller needs CREATEROLE."""
        from detent.store.postgres.roles import roles_sql

        with self._pool.connection() as connection, translating(self._name), connection.transaction():
            connection.execute(roles_sql().encode())

    def check_thread(self) -> None:
        """A no-op: every write has a connection of its own."""

    def together(self, work: Callable[[Verbs], T]) -> T:
        """One transaction. After a deadlock, all of `work` is repeated."""
        return self._session.together(lambda session: work(PostgresVerbs(session, self._name, self._bounds)))

    @property
    def schema_known(self) -> int:
        from detent.store.postgres import schema

        return schema.KNOWN[-1].version

    @property
    def ids_by_transaction(self) -> bool:
        """False: ids come from a sequence."""
        return False

    def on(self, connection: Any) -> Verbs:
        """On a connection of psycopg, or of SQLAlchemy over it."""
        return PostgresVerbs(session_over(connection, self._name), self._name, lanes=self._lanes_first)

    def on_async(self, connection: Any) -> AsyncVerbs:
        """On an async connection of psycopg or asyncpg, or of SQLAlchemy over one of them."""
        return AsyncPostgresVerbs(connection, self._name, self._lanes_first)

    def answering_within(self, seconds: float) -> AbstractContextManager[None]:
        """For every statement of this thread, and for the connections that it has to open."""
        return answering_within(seconds)

    def up_for(self) -> float | None:
        """Seconds since the server started."""
        return self._session.run(up_for())

    @property
    def whereabouts(self) -> tuple[str, Callable[[], str | None]]:
        """The start time of the server, and the number of the database."""
        return "postgres", lambda: self._session.run(which())

    def guard_entity(self, lifecycle: Lifecycle, table: str, id_column: str, state_column: str) -> None:
        """The owner of the table calls this."""
        with self._pool.connection() as connection, translating(self._name), connection.transaction():
            attach(connection, self._name, lifecycle, table, id_column, state_column)

    def lifecycle_versions(self) -> dict[str, int]:
        """Read the table itself: a login that attaches lifecycles owns the schema."""
        with self._pool.connection() as connection, translating(self._name):
            return attached_versions(connection)

    def commit_block(self, job_id: int, attempt: int) -> AbstractContextManager[Tx]:
        """Holds no lock but the user's own until the mark, so an open block does not block other jobs."""
        return commit_block(self._pool, self._name, job_id, attempt, self._settle)

    def holders_block(
        self, job_id: int, attempt: int, leave: Callable[[Verbs], DetentError | Moved]
    ) -> AbstractContextManager[Tx]:
        """Holds no lock but the user's own until `leave`."""

        def last(session: Session) -> DetentError | Moved:
            return leave(PostgresVerbs(session, self._name, self._bounds))

        return holders_block(self._pool, self._name, job_id, attempt, last)

    def verify(self, watch: Callable[[int], None] | None = None) -> list[Violation]:
        """Every invariant on one snapshot."""
        from detent.store.invariants.postgres import violations

        with self._snapshot() as connection:
            return violations(connection, watch)

    def verify_step(self, place: WalkPlace, rows_max: int) -> WalkStep:
        """On one snapshot. The server ends a statement that takes too long or waits too long for a lock."""
        from detent.store.installed_release import is_newer
        from detent.store.invariants.postgres import changed_definitions
        from detent.store.postgres.schema import installed

        with self._snapshot() as connection:
            schema = place.part == "schema" and not is_newer(installed(connection))
            connection.execute(_BRIEFLY)

            def rows(sql: str, params: Mapping[str, Any]) -> list[tuple[Any, ...]]:
                # A query that fails on damaged rows must not end the snapshot of the others.
                with translating(self._name), connection.transaction():
                    return connection.execute(sql.encode(), params or None).fetchall()

            before_all = datetime.min.replace(tzinfo=UTC)
            done = step("postgres", rows, place, rows_max, before_all=before_all, listed=list, schema=schema)
            views = tuple(changed_definitions(connection)) if schema else ()
            return WalkStep(done.violations + views, done.then)

    def pages_not_checked(self) -> str | None:
        """Depends on what this role may call in this database."""
        from detent.store.invariants.postgres import pages_not_checked

        with self._snapshot() as connection:
            return pages_not_checked(connection)

    def cancel_reads(self) -> None:
        """Asks the server to cancel the statements on their connections."""
        self._long_reads.cancel()

    def repair(self, actor: str, reason: str, *, apply: bool = False) -> list[RepairStep]:
        """The plan is made on one snapshot. Other writers wait while it is carried out. The caller owns the tables."""
        from detent.store.installed_release import refuse_if_newer
        from detent.store.postgres.schema import installed
        from detent.store.repair.apply import repair
        from detent.store.repair.postgres import PostgresRepair

        def put_right(connection: Connection) -> list[RepairStep]:
            refuse_if_newer(self._name, installed(connection))
            return repair(PostgresRepair(connection), actor, reason, apply=True)

        if apply:
            return self._pooled.transact(put_right)
        with self._snapshot() as connection:
            return repair(PostgresRepair(connection), actor, reason, apply=False)

    @contextmanager
    def _snapshot(self) -> Iterator[Connection]:
        with (
            self._pool.connection() as connection,
            self._long_reads.register(connection),
            translating(self._name),
            connection.transaction(),
        ):
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            connection.execute(WHOLE_TABLES)
            yield connection

    def close(self) -> None:
        """Close the connections."""
        self._wake.close()
        self._pool.close()

    def _announce(self, seconds: float) -> None:
        self._session.run(wake_announce(seconds))

    def _settle(self, job_id: int, attempt: int) -> DetentError | None:
        """C6: find out the outcome of a COMMIT whose answer was lost. Wait until that transaction has ended, and for a
        server that restarts, for at most `SETTLE_SECONDS_MAX`."""
        pause = LOOK_PAUSE_FIRST
        until = self._clock.monotonic() + SETTLE_SECONDS_MAX
        with answering_within(SETTLE_SECONDS_MAX):
            while True:
                try:
                    return self._session.run(commit_check(job_id, attempt, settled=True))[0]
                except DatabaseError:
                    if self._clock.monotonic() + pause >= until:
                        raise
                self._clock.sleep(pause)
                pause = min(2 * pause, LOOK_PAUSE_LONGEST)
