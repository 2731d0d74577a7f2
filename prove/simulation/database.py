"""One database in memory for all processes of a schedule, and what each process sees of it.

Every verb is a point at which the scheduler may let others go on, and at which it may let something fail.
"""

from __future__ import annotations

import copy
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import Any

from detent.errors import DatabaseUnreachable, GuardViolation, OutcomeUnknown
from detent.store.limits.sqlite_lanes import Reached
from prove.nested_connection import nested_store
from prove.simulation.words import described
from prove.simulation.world import Process, ProcessDied, world

__all__ = ["Database", "ProcessStore"]

_PLAIN = frozenset({"name", "ids_by_transaction", "whereabouts", "identity_of", "is_turnable"})
"""What a process asks its store without reaching the database."""
_USERS_TABLE = "CREATE TABLE effect (job_id INTEGER NOT NULL, attempt INTEGER NOT NULL, what TEXT NOT NULL)"


class _SharedClock:
    """The clock of the world that runs."""

    def now(self) -> Any:
        return world().clock.now()

    def monotonic(self) -> float:
        return world().clock.monotonic()

    def sleep(self, seconds: float) -> None:
        world().clock.sleep(seconds)


class Database:
    """A database that is empty again at the beginning of every schedule."""

    def __init__(self) -> None:
        self.store, self._connection = nested_store(_SharedClock(), _USERS_TABLE)
        self.checks: list[Callable[[str], None]] = []

    def reset(self) -> None:
        """Make it empty."""
        self._connection.begin_whole()
        self.store._reached = Reached()

    def rows(self, sql: str, params: Any = ()) -> list[tuple[Any, ...]]:
        """Read outside the simulation."""
        cursor = sqlite3.Cursor(self._connection)
        return cursor.execute(sql, params).fetchall()

    @property
    def changes(self) -> int:
        """Return a number that differs if anything was written in between."""
        return self._connection.total_changes


class _Wake:
    """Tells a process that there may be work. A message may get lost, as NOTIFY may."""

    def __init__(self, store: ProcessStore) -> None:
        self._store = store
        self._heard = 0
        self.is_sure = True

    def version(self, timeout: float = 2.0) -> int:
        return self._heard

    def wait(self, version: int, timeout: float) -> bool:
        return world().block(lambda: self._heard != version, timeout)

    def interrupt(self) -> None:
        self._heard += 1

    def notify(self) -> None:
        self._store.notify_all()


class ProcessStore:
    """The store as one process sees it."""

    def __init__(
        self, database: Database, process: Process, others: list[ProcessStore], *, is_mortal: bool = True
    ) -> None:
        self._database = database
        self._is_mortal = is_mortal
        self.process = process
        self._others = others
        self._store = copy.copy(database.store)
        self._store._reached = Reached()
        self.wake = _Wake(self)
        others.append(self)
        self._store._wake = self.wake  # type: ignore[assignment]

    def notify_all(self) -> None:
        """Wake everyone who waits for work; some may not hear it."""
        for one in self._others:
            if world().has_faults and world().choices.happens(0.05):
                world().injected["wake-up that is lost"] += 1
            else:
                one.wake.interrupt()

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._store, name)
        if name in _PLAIN or not callable(found):
            return found

        def verb(*args: Any, **kwargs: Any) -> Any:
            return self._call(name, found, args, kwargs)

        self.__dict__[name] = verb
        return verb

    # -- what is no verb ---------------------------------------------------------------------------------------

    def check_thread(self) -> None:
        """Nothing to check: there is one thread."""

    def answering_within(self, seconds: float) -> AbstractContextManager[None]:
        return nullcontext()

    def up_for(self) -> float | None:
        return None

    def ready(self, *, create: bool = True) -> None:
        """It is."""

    def close(self) -> None:
        """It stays open for the others."""

    def cancel_reads(self) -> None:
        """There are none."""

    def claim_ahead(self, **terms: Any) -> Callable[[], Any]:
        return lambda: self.job_claim(**terms)

    def commit_block(self, job_id: int, attempt: int) -> AbstractContextManager[Any]:
        return self._block("commit block", job_id, self._store.commit_block(job_id, attempt))

    def holders_block(self, job_id: int, attempt: int, leave: Any) -> AbstractContextManager[Any]:
        return self._block("step in a transaction", job_id, self._store.holders_block(job_id, attempt, leave))

    # -- calls -------------------------------------------------------------------------------------------------

    def _call(self, name: str, verb: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        if world().current is None:
            return verb(*args, **kwargs)
        fault = self._before(name)
        try:
            answer = verb(*args, **kwargs)
        except GuardViolation as error:
            _refused_by_a_guard(error)
            raise
        finally:
            self._check(name)
        world().tell(partial(described, name, args, kwargs, answer))
        self._after(name, fault)
        return answer

    @contextmanager
    def _block(self, what: str, job_id: int, block: AbstractContextManager[Any]) -> Iterator[Any]:
        fault = self._before(what)
        here = world()
        here.in_block = here.current
        try:
            with block as tx:
                here.tell(f"{what} of job {job_id} begins")
                yield tx
                if fault == "crash before":
                    fault = ""
                    self._die(what)
        except GuardViolation as error:
            _refused_by_a_guard(error)
            raise
        finally:
            here.in_block = None
            self._check(what)
        here.tell(f"{what} of job {job_id} is committed")
        self._after(what, fault)

    def _before(self, name: str) -> str:
        here = world()
        here.calls += 1
        here.block(None)
        me = here.current
        while here.in_block is not None and here.in_block is not me:
            here.block(lambda: here.in_block is None)
        if not here.has_faults:
            return ""
        fault = _fault_of(here.choices.draw(), _AT_THE_WORST if name in _CRITICAL else _ANYWHERE)
        if not self._is_mortal and fault in _DEADLY:
            return ""
        if fault == "error before":
            here.injected["no answer from the database"] += 1
            here.tell(f"{name}: the database cannot be reached")
            raise DatabaseUnreachable("the database", "the simulation broke the connection")
        if fault == "crash before" and not name.endswith(("block", "transaction")):
            self._die(name)
        if fault == "freeze":
            self._freeze(name)
        if fault == "time":
            seconds = (0.3, 2.0, 8.0, 30.0)[here.choices.below(4)]
            here.injected["slow call"] += 1
            here.tell(f"{seconds:g} seconds pass")
            here.clock.seconds += seconds
        return fault

    def _after(self, name: str, fault: str) -> None:
        if fault == "lost answer":
            world().injected["answer lost after the effect"] += 1
            world().tell(f"{name}: the answer is lost")
            raise OutcomeUnknown("the database", "the simulation lost the answer")
        if fault == "crash after":
            self._die(name)

    def _die(self, name: str) -> None:
        here = world()
        here.injected["crash of a process"] += 1
        here.tell(f"{self.process.name} dies at {name}")
        here.kill(self.process)
        raise ProcessDied

    def _freeze(self, name: str) -> None:
        """Let this process stand still, or the whole machine on which it runs."""
        here = world()
        choice = here.choices.below(6)
        seconds = (1.0, 4.0, 12.0)[choice % 3]
        several = [self.process] if choice < 3 else self.process.machine
        names = " and ".join(sorted(one.name for one in several if not one.is_dead))
        here.injected["machine that stands still" if len(several) > 1 else "process that stands still"] += 1
        here.tell(f"{names} stand still for {seconds:g} s before {name}")
        for process in several:
            process.frozen_until = here.clock.seconds + seconds
        here.block(None)

    def _check(self, name: str) -> None:
        for check in self._database.checks:
            try:
                check(name)
            except AssertionError as error:
                # Not raised here: the code that is tested would handle it.
                world().tell(f"found: {error}")
                world().defects.append(error)


def _refused_by_a_guard(error: GuardViolation) -> None:
    """What Detent asks of its database is refused by no guard: each is a second line."""
    world().tell(f"a guard of the database refuses it: {error}")
    world().defects.append(error)


_Shares = tuple[tuple[str, int], ...]
_ANYWHERE: _Shares = (
    ("error before", 10), ("lost answer", 10), ("crash before", 4), ("crash after", 4), ("freeze", 5), ("time", 10)
)  # fmt: skip
"""Faults, and how often they happen in a thousand calls."""
_AT_THE_WORST: _Shares = (
    ("error before", 25), ("lost answer", 40), ("crash before", 30), ("crash after", 40), ("freeze", 70), ("time", 20)
)  # fmt: skip
_CRITICAL = frozenset(
    {
        "commit block",
        "step in a transaction",
        "job_start",
        "job_finish",
        "job_abort",
        "step_record",
        "wait_look",
        "workflow_park",
        "workflow_spawn",
        "signal_send",
    }
)
"""What decides whether something happens once: more goes wrong here."""
_DEADLY = ("crash before", "crash after", "freeze")


def _fault_of(choice: int, shares: _Shares) -> str:
    left = 1000 - choice
    for name, share in shares:
        if left <= share:
            return name
        left -= share
    return ""
