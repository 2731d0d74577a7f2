"""Breadth-first search over every interleaving of one job, some workers and everything that can go wrong.

The database is the reference model itself; a worker is what it remembers. Any worker may stop, forget, wake up late
and try anything its memory allows; a lease may expire at any moment; the answer to a commit may be lost on either side
of it. Time is abstract: the clock stands still and a lease either counts or has run out.

A worker's memory never touches the record, so what a verb does to a database is computed once and looked up after.
`faults.py` says what must hold in every database and over every step.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Literal, NamedTuple, TypeAlias

from detent.errors import DetentError
from detent.lifecycle.library import JOB
from detent.model.records import Abort, Commit, Finish, NewJob
from prove.reference.faults import Database, Step, faults_at_rest, faults_of_step
from prove.reference.model import Model

JOB_ID = 1
LEASE = 1.0
RELEASES_MAX = 1

Phase: TypeAlias = Literal["holds", "unsure", "knows"]


class Memory(NamedTuple):
    """What a worker believes: it has this attempt; its commit may have happened; it has happened."""

    attempt: int
    phase: Phase = "holds"


NOTHING = Memory(0)


class World(NamedTuple):
    """The number of the database, what each worker remembers, and which lease a reaper in two steps saw expired."""

    database: int
    workers: tuple[Memory, ...]
    seen_expired: int = 0


class Found(NamedTuple):
    """What a search met: how much it saw, and the first fault with the steps that lead to it."""

    databases: int
    worlds: int
    fault: str | None
    path: tuple[str, ...]
    outcomes: frozenset[str]  # the states of rest that were reached


class Search:
    """One search. `reaper_steps=2` lets the reaper look and act apart, without looking again: a mutant.

    `heed` passes over faults that do not begin with it, to see what harm comes of them.
    """

    def __init__(
        self,
        model: type[Model] = Model,
        *,
        workers: int = 3,
        attempts_max: int = 2,
        idempotent: bool = True,
        reaper_steps: Literal[1, 2] = 1,
        heed: str = "",
    ) -> None:
        self.model = model
        self.reaper_steps = reaper_steps
        self.heed = heed
        self.databases: list[Database] = []
        self.numbers: dict[Database, int] = {}
        self.known_steps: dict[tuple[int, str, int], tuple[int, bool]] = {}
        self.known_moves: dict[tuple[int, Memory], list[tuple[str, int, Memory]]] = {}
        self.faults: list[tuple[str, str]] = []
        first = model()
        job = NewJob(
            id=JOB_ID,
            task="charge",
            payload="{}",
            nonce=0,
            fingerprint="",
            attempts_max=attempts_max,
            idempotent=idempotent,
        )
        first.job_enqueue([job])
        self.start = World(self.number(Database.of(first, JOB_ID, ())), (NOTHING,) * workers)

    def run(self) -> Found:
        """Every reachable world, until a fault is met; then whether each of them can still come to rest."""
        came_from: dict[World, tuple[World, str] | None] = {self.start: None}
        before: dict[World, list[World]] = {}
        ahead = deque([self.start])
        while ahead:
            world = ahead.popleft()
            for name, after in self.moves(world):
                if after != world:
                    before.setdefault(after, []).append(world)
                if after not in came_from:
                    came_from[after] = (world, name)
                    ahead.append(after)
                if self.faults:
                    fault, step = self.faults[0]
                    return self.found(came_from, fault, (*_path(came_from, world), step))
        stuck = self.cannot_end(came_from, before)
        if stuck is not None:
            return self.found(came_from, "liveness: no way leads to rest from here", _path(came_from, stuck))
        return self.found(came_from, None, ())

    def found(self, worlds: Collection[World], fault: str | None, path: tuple[str, ...]) -> Found:
        rests = frozenset(database.job.state for database in self.databases) & JOB.rests
        return Found(len(self.databases), len(worlds), fault, path, rests)

    def cannot_end(self, worlds: Collection[World], before: dict[World, list[World]]) -> World | None:
        """A world from which no path leads to a state of rest, or None."""
        ends = {world for world in worlds if self.databases[world.database].job.state in JOB.rests}
        ahead = deque(ends)
        while ahead:
            for world in before.get(ahead.popleft(), ()):
                if world not in ends:
                    ends.add(world)
                    ahead.append(world)
        return next((world for world in worlds if world not in ends), None)

    # -- who may do what ---------------------------------------------------------------------------------------

    def moves(self, world: World) -> Iterator[tuple[str, World]]:
        """Everything that can happen next. Workers that remember the same are one and the same."""
        for memory in set(world.workers):
            key = (world.database, memory)
            if key not in self.known_moves:
                self.known_moves[key] = list(self.worker_moves(*key))
            for name, database, then in self.known_moves[key]:
                workers = list(world.workers)
                workers[workers.index(memory)] = then
                yield name, self.world(database, workers, world.seen_expired)
        for name, database in self.environment_moves(world.database):
            yield name, self.world(database, world.workers, world.seen_expired)
        if self.reaper_steps == 2:
            yield from self.mutant_reaper_moves(world)

    def world(self, database: int, workers: Iterable[Memory], seen_expired: int) -> World:
        """The smallest of the worlds that cannot be told apart.

        Workers have no names. An attempt that is over can no longer commit, so what its worker believes about that is
        all one. Where the job rests, the worlds end: that nothing moves it any more is checked once per database.
        """
        job = self.databases[database].job
        if job.state in JOB.rests:
            return World(database, ())
        current = job.attempt if job.state == "running" else -1
        return World(
            database, tuple(sorted(m if m.attempt == current else Memory(m.attempt) for m in workers)), seen_expired
        )

    def worker_moves(self, database: int, memory: Memory) -> Iterator[tuple[str, int, Memory]]:
        attempt, phase = memory
        if memory == NOTHING:
            after, claimed = self.step(database, "claim")
            if claimed:
                yield "claim", after, Memory(self.databases[after].job.attempt)
            return
        yield "crash", database, NOTHING
        yield "renew", self.step(database, "renew", attempt)[0], memory
        match phase:
            case "holds":
                for verb in ("start", "finish", "fail", "release"):
                    yield verb, self.step(database, verb, attempt)[0], memory
            case "unsure":
                row = self.databases[database].job
                happened = row.attempt == attempt and row.committed_at is not None
                yield "look up", database, Memory(attempt, "knows" if happened else "holds")
            case "knows":
                for verb in ("finish", "fail"):
                    yield verb, self.step(database, verb, attempt)[0], memory
                return
        after, committed = self.step(database, "commit", attempt)
        yield "commit", after, Memory(attempt, "knows") if committed else memory
        yield "commit, answer lost", after, Memory(attempt, "unsure")
        yield "commit, never arrived", database, Memory(attempt, "unsure")

    def environment_moves(self, database: int) -> Iterator[tuple[str, int]]:
        for name in ("cancel", "recover"):
            yield name, self.step(database, name)[0]
        for lease_id in self.databases[database].live_leases():
            yield f"lease {lease_id} expires", self.step(database, "expire", lease_id)[0]
        if self.reaper_steps == 1:
            yield "reap", self.step(database, "reap")[0]

    def mutant_reaper_moves(self, world: World) -> Iterator[tuple[str, World]]:
        """It looks for expired leases of jobs that are not committed, and acts on them some time later."""
        now = self.databases[world.database]
        for lease_id in now.expired_leases() if now.job.committed_at is None else ():
            yield f"reaper sees lease {lease_id} expired", world._replace(seen_expired=lease_id)
        if world.seen_expired:
            after = self.step(world.database, "reap blindly", world.seen_expired)[0]
            yield "reaper acts", self.world(after, world.workers, 0)

    # -- what a verb does to a database ------------------------------------------------------------------------

    def number(self, database: Database) -> int:
        """Databases are numbered as they are met."""
        number = self.numbers.setdefault(database, len(self.databases))
        if number == len(self.databases):
            self.databases.append(database)
        return number

    def step(self, database: int, verb: str, which: int = 0) -> tuple[int, bool]:
        """The database after a verb, and whether the verb was taken."""
        key = (database, verb, which)
        if key not in self.known_steps:
            before = self.databases[database]
            model = before.thaw(self.model)
            taken = VERBS[verb](model, which)
            effects = (*before.effects, which) if taken and _has_effect(verb, before, model) else before.effects
            after = Database.of(model, JOB_ID, effects)
            is_new = after not in self.numbers
            self.known_steps[key] = (self.number(after), taken)
            faults = [*faults_of_step(before, after, Step(verb, which, taken))]
            if is_new:
                faults += faults_at_rest(after)
            self.faults += [(fault, f"{verb} {which}") for fault in faults if fault.startswith(self.heed)]
            if is_new and after.job.state in JOB.rests:
                self.try_everything(self.numbers[after])
        return self.known_steps[key]

    def try_everything(self, database: int) -> None:
        """Every verb of every attempt there ever was, on a job that rests: nothing moves it."""
        for verb in VERBS:
            for attempt in range(1, self.databases[database].job.attempt + 1):
                after, _ = self.step(database, verb, attempt)
                if after != database:
                    self.faults.append((f"INV_003: {verb} changed a job that rests", f"{verb} {attempt}"))


def _has_effect(verb: str, before: Database, after: Model) -> bool:
    """The effect is part of the transaction that commits; a finish without an earlier commit is that transaction."""
    ends_uncommitted = before.job.committed_at is None and before.job != after.job[JOB_ID]
    return verb == "commit" or (verb == "finish" and ends_uncommitted)


def _path(came_from: dict[World, tuple[World, str] | None], world: World) -> tuple[str, ...]:
    names: list[str] = []
    while (step := came_from[world]) is not None:
        world, name = step
        names.append(name)
    return tuple(reversed(names))


def _taken(answer: object) -> bool:
    return not isinstance(answer, DetentError)


def _claim(model: Model, _: int) -> bool:
    attempt = model.job[JOB_ID].attempt + 1
    jobs = model.job_claim(lease_id=attempt, worker="w", queues=None, tasks=["charge"], limit=1, lease=LEASE)
    return bool(jobs)


def _renew(model: Model, attempt: int) -> bool:
    return model.lease_renew([attempt], LEASE)[0].held


def _fail(model: Model, attempt: int) -> bool:
    return _taken(model.job_abort([Abort(job_id=JOB_ID, attempt=attempt, outcome="error")], "w")[0])


def _release(model: Model, attempt: int) -> bool:
    """Bounded: an attempt that is given back does not count, so a job could be given back for ever."""
    if model.job[JOB_ID].spared >= RELEASES_MAX:
        return False
    return _taken(model.job_abort([Abort(job_id=JOB_ID, attempt=attempt, outcome="released")], "w")[0])


def _expire(model: Model, lease_id: int) -> bool:
    lease = model.lease.get(lease_id)
    if lease is not None:
        model.lease[lease_id] = lease._replace(expires_at=model.clock)
    return lease is not None


def _reap(model: Model, _: int) -> bool:
    return model.lease_reap(10).leases > 0


def _reap_blindly(model: Model, lease_id: int) -> bool:
    """The second step of a reaper that does not look again: for it the lease is as expired as it was."""
    for job in model.held_by(lease_id):
        model.end(job, Abort(job_id=job.id, attempt=job.attempt, outcome="expired"), "w")
    return model.lease.pop(lease_id, None) is not None


VERBS: dict[str, Callable[[Model, int], bool]] = {
    "claim": _claim,
    "start": lambda model, attempt: _taken(model.job_start([(JOB_ID, attempt)])[0]),
    "renew": _renew,
    "commit": lambda model, attempt: _taken(model.job_commit(Commit(job_id=JOB_ID, attempt=attempt))),
    "finish": lambda model, attempt: _taken(model.job_finish([Finish(JOB_ID, attempt)], "w")[0]),
    "fail": _fail,
    "release": _release,
    "cancel": lambda model, _: _taken(model.job_cancel([JOB_ID], "ana")[0]),
    "recover": lambda model, _: _taken(model.job_recover([JOB_ID])[0]),
    "expire": _expire,
    "reap": _reap,
    "reap blindly": _reap_blindly,
}
