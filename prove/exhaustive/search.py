"""Walks through all states, depth first: the store is taken back to a state by undoing what was done since."""

from __future__ import annotations

import random
import sys
from collections import Counter
from typing import Any

from detent.errors import DetentError
from detent.model.clock import from_micros, to_micros
from detent.store.invariants.sqlite import violations
from detent.store.sqlite.driver.executor import SqliteExecutor
from detent.testing.stores import START
from prove.coverage import transitions_of
from prove.exhaustive.moves import Bounds, Move, moves, zombie_moves
from prove.exhaustive.record import TABLES, Effect, Record
from prove.figure import Budget, Tally
from prove.nested_connection import nested_store
from prove.reference.answers import answer_of, comparable
from prove.reference.dump import Reader, difference, dump_model
from prove.reference.faults import Database, Step, faults_at_rest, faults_of_step
from prove.reference.rules import SECOND

__all__ = ["Search"]

_USERS_TABLE = "CREATE TABLE effect (job_id INTEGER NOT NULL, attempt INTEGER NOT NULL)"
_IDS = 1_000
"""More than the moves use."""


class _Clock:
    """Says what time it is in the state that is looked at; it may go back."""

    def __init__(self) -> None:
        self.micros = to_micros(START, field="START")

    def now(self) -> Any:
        return from_micros(self.micros)

    def monotonic(self) -> float:
        return self.micros / SECOND

    def sleep(self, seconds: float) -> None:
        raise AssertionError("nothing waits for time here")


class _Subject:
    """The real store, and what the moves need besides its verbs."""

    def __init__(self, clock: _Clock) -> None:
        self.clock = clock
        self.store, self.connection = nested_store(clock, _USERS_TABLE)
        self.connection.begin_whole()
        self.store.ids_reserve(_IDS)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)

    def expire_lease(self, lease_id: int) -> None:
        """Let one lease expire now."""
        self.connection.execute("UPDATE detent_lease SET expires_at = ? WHERE id = ?", (self.clock.micros, lease_id))

    def effect_through_block(self, job_id: int, attempt: int) -> None:
        """Commit through the boundary, with an effect."""
        with self.store.commit_block(job_id, attempt) as tx:
            tx.execute("INSERT INTO effect VALUES (:job_id, :attempt)", {"job_id": job_id, "attempt": attempt})


class Search:
    """One walk. It stops after `found_max` faults, and when its time is up."""

    def __init__(self, bounds: Bounds, budget: Budget, *, found_max: int = 3) -> None:
        self.bounds = bounds
        self.found_max = found_max
        self.budget = budget
        self.tally = Tally()
        self.random = random.Random(budget.seed)
        self.clock = _Clock()
        self.subject = _Subject(self.clock)
        self.connection = self.subject.connection
        self.reader = Reader("sqlite:", self.connection, TABLES)
        self.executor = SqliteExecutor(self.connection)
        self.states: set[tuple[Any, ...]] = set()
        self.parts: set[tuple[Any, ...]] = set()
        self.taken = self.refused = 0
        self.is_whole = True

    def run(self) -> Tally:
        """Walk. A state in which something is wrong is not walked through."""
        limit = sys.getrecursionlimit()
        sys.setrecursionlimit(20_000)
        try:
            self._walk(Record(self.clock.micros), (), Counter())
        finally:
            sys.setrecursionlimit(limit)
            self.subject.store.close()
        self.tally.injected = Counter(
            {
                "states, each with all invariants": len(self.states),
                "moves that changed something": self.taken,
                "moves that were refused or changed nothing": self.refused,
            }
        )
        return self.tally

    # -- the walk ----------------------------------------------------------------------------------------------

    def _walk(self, record: Record, path: tuple[str, ...], moved: Counter[str]) -> None:
        """Look at a state, and at everything that can be reached from it."""
        self.states.add(record.key)
        now = transitions_of(self.connection)
        self.tally.covered.update(now - moved)
        self._check_invariants(path)
        self._try_zombies(record, path)
        ahead = list(moves(record, self.bounds))
        self.random.shuffle(ahead)
        for move in ahead:
            if self.budget.is_spent or len(self.tally.stories) >= self.found_max:
                self.is_whole = False
                return
            self.connection.mark()
            after = self._step(record, move, (*path, move.name))
            if after is not None and after.key not in self.states:
                self._walk(after, (*path, move.name), now)
            self.connection.undo()

    def _try_zombies(self, record: Record, path: tuple[str, ...]) -> None:
        """Let every attempt that is over try everything, once for each part of a state."""
        for job in record.jobs:
            part = record.part_of(job)
            if part in self.parts:
                continue
            self.parts.add(part)
            for attempt in range(1, job.attempt + (job.state != "running")):
                for move in zombie_moves(job.id, attempt):
                    self.connection.mark()
                    after = self._step(record, move, (*path, move.name))
                    if after is not None and after._replace(clock=record.clock) != record:
                        self._found("wrong", (*path, move.name), f"attempt {attempt} of job {job.id} was over")
                    self.connection.undo()

    def _step(self, record: Record, move: Move, path: tuple[str, ...]) -> Record | None:
        """Make a move in the model and in the store; return the record after it, or None if something is wrong."""
        model = record.thaw()
        self.clock.micros = model.clock = record.clock + move.seconds * SECOND
        expected = answer_of(move.call, model)
        changes = self.connection.total_changes
        found = answer_of(move.call, self.subject)
        if comparable(found) != comparable(expected):
            self._found("wrong", path, f"the store answers {found!r}, the model {expected!r}")
            return None
        is_taken = not _is_refused(expected)
        effects = (*record.effects, Effect(*move.holder)) if move.through_block and is_taken else record.effects
        after = Record.of(model, effects)
        if after._replace(clock=record.clock) == record and self.connection.total_changes == changes:
            self.refused += 1
            return after
        self.taken += 1
        apart = difference(dump_model(model, TABLES), self.reader.dump())
        if apart:
            self._found("wrong", path, f"the store (+) differs from the model (-):\n{apart}")
            return None
        written = tuple(Effect(*row) for row in self.connection.execute("SELECT * FROM effect ORDER BY rowid"))
        if written != effects:
            kind = "doubled" if len(written) > len(effects) else "lost"
            self._found(kind, path, f"the effects are {written}, and must be {effects}")
            return None
        if fault := self._fault_of(record, after, move, is_taken):
            self._found("doubled" if fault.startswith("INV_001") else "wrong", path, fault)
            return None
        return after

    # -- what must hold ----------------------------------------------------------------------------------------

    def _fault_of(self, record: Record, after: Record, move: Move, is_taken: bool) -> str | None:
        for job in after.jobs:
            new = _of_job(after, job.id)
            faults = list(faults_at_rest(new))
            if record.job(job.id) is not None:
                is_mine = move.holder[0] == job.id
                step = Step(move.verb, move.holder[1], is_taken) if is_mine else Step("", 0, True)
                faults += faults_of_step(_of_job(record, job.id), new, step)
            if faults:
                return faults[0]
        return None

    def _check_invariants(self, path: tuple[str, ...]) -> None:
        """Ask every invariant of `detent verify`. The schema stays the same, so it is not compared."""
        for violation in violations(self.executor, self.clock.micros, schema=False):
            self._found("wrong", path, f"verify: {violation}")

    def _found(self, kind: str, path: tuple[str, ...], what: str) -> None:
        setattr(self.tally, kind, getattr(self.tally, kind) + 1)
        self.tally.stories.append(f"{what}\nafter {', '.join(path)}")


def _is_refused(answer: Any) -> bool:
    if isinstance(answer, tuple) and answer and answer[0] == "raised":
        return True
    answers = answer if isinstance(answer, list) else [answer]
    return any(isinstance(one, DetentError) for one in answers)


def _of_job(record: Record, job_id: int) -> Database:
    """Return the rows of one job. A commit without an effect in the user's table counts as if it had one."""
    rows = Database.of(record.thaw(), job_id, ())
    effects = tuple(effect.attempt for effect in record.effects if effect.job_id == job_id)
    return rows._replace(effects=effects or rows.committed())
