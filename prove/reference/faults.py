"""What must hold of the record in every state and over every step, and the search's frozen picture of the record.

INV_001: at most one execution commits, and the effect happens at most once. INV_002: the effect has happened exactly
where its own attempt is committed. INV_003: every change is declared and recorded, numbers only grow, records stay.
INV_004: whatever is open can be taken up again: a running job has its lease, a pending one its place in the queue.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from detent.lifecycle.checks import reach
from detent.lifecycle.library import EXECUTION, JOB
from prove.reference.model import Model
from prove.reference.rows import Dead, Execution, Job, Lease, Ready, TransitionLog, Waiting

HOLDERS_VERBS = ("start", "commit", "finish", "fail", "release")
WAYS = {state: EXECUTION.allowed(state) for state in EXECUTION.states}
REACHED = {state: reach([state], WAYS) for state in EXECUTION.states}


class Database(NamedTuple):
    """The record of one job, frozen, and the attempts whose effect it holds.

    A lease that no running job names decides nothing any more, so it is left out.
    """

    job: Job
    ready: tuple[Ready, ...]
    waiting: tuple[Waiting, ...]
    lease: tuple[Lease, ...]
    execution: tuple[Execution, ...]
    transition_log: tuple[TransitionLog, ...]
    dead: tuple[Dead, ...]
    effects: tuple[int, ...]

    @classmethod
    def of(cls, model: Model, job_id: int, effects: tuple[int, ...]) -> Database:
        return cls(
            model.job[job_id],
            tuple(row for row in model.ready.values() if row.job_id == job_id),
            tuple(row for row in model.waiting.values() if row.job_id == job_id),
            tuple(row for row in model.lease.values() if any(job.id == job_id for job in model.held_by(row.id))),
            tuple(row for row in model.execution.values() if row.job_id == job_id),
            tuple(row for row in model.transition_log if row.job_id == job_id),
            tuple(row for row in model.dead.values() if row.job_id == job_id),
            effects,
        )

    def thaw(self, kind: type[Model]) -> Model:
        model = kind()
        model.job = {self.job.id: self.job}
        model.lane = {self.job.lane: self.job.lane}
        model.ready = {row.job_id: row for row in self.ready}
        model.waiting = {row.job_id: row for row in self.waiting}
        model.lease = {row.id: row for row in self.lease}
        model.execution = {(row.job_id, row.attempt): row for row in self.execution}
        model.transition_log = list(self.transition_log)
        model.dead = {row.job_id: row for row in self.dead}
        return model

    def live_leases(self) -> set[int]:
        return {row.id for row in self.lease if row.expires_at > 0}

    def expired_leases(self) -> set[int]:
        return {row.id for row in self.lease if row.expires_at <= 0}

    def committed(self) -> tuple[int, ...]:
        """The attempts that are committed, ended or in flight."""
        ended = tuple(row.attempt for row in self.execution if row.committed_at is not None)
        in_flight = self.job.state == "running" and self.job.committed_at is not None
        return (*ended, self.job.attempt) if in_flight else ended

    def executions(self) -> dict[int, str]:
        """Each attempt and the state it is in."""
        states = {row.attempt: "done" if row.outcome == "done" else "aborted" for row in self.execution}
        if self.job.state == "running":
            begun = "leased" if self.job.started_at is None else "in_progress"
            states[self.job.attempt] = begun if self.job.committed_at is None else "committed"
        return states

    def folded(self) -> str:
        """The job's state from its records alone."""
        if self.job.attempt > len(self.execution):
            return "running"
        state = self.execution[-1].next_state if self.execution else "pending"
        for line in self.transition_log:
            if line.attempt == self.job.attempt and line.from_state != "running":
                state = line.to_state
        return state


class Step(NamedTuple):
    """A verb, the attempt (or lease) it names, and whether it was taken."""

    verb: str
    which: int
    taken: bool


def faults_at_rest(now: Database) -> Iterator[str]:
    """What is wrong with a database, whatever led to it."""
    job, committed = now.job, now.committed()
    if len(committed) > 1 or len(now.effects) > 1:
        yield f"INV_001: committed by {committed}, effects of {now.effects}"
    if set(now.effects) != set(committed):
        yield f"INV_002: committed by {committed}, effects of {now.effects}"
    if [row.attempt for row in now.execution] != list(range(1, job.ended + 1)):
        yield "INV_003: an ended attempt has no row of its own"
    if now.folded() != job.state:
        yield f"INV_003: the record says {now.folded()}, the job {job.state}"
    if (job.state == "running") != (job.ended < job.attempt):
        yield "INV_003: a job is running exactly while its latest attempt is open"
    if job.state == "running" and job.lease_id not in {row.id for row in now.lease}:
        yield "INV_004: an open execution without a lease: nobody would ever take it up"
    if (job.state == "pending") != (len(now.ready) + len(now.waiting) == 1):
        yield "INV_004: pending means exactly one place in the queue"
    if (job.state == "quarantined") != (len(now.dead) == 1):
        yield "INV_004: quarantined means among the dead letters"


def faults_of_step(old: Database, new: Database, step: Step) -> Iterator[str]:
    """What is wrong with a step, whatever its ends look like."""
    if not step.taken and old != new:
        yield f"G3: {step.verb} was refused and changed the record"
    if step.taken and step.verb in HOLDERS_VERBS and old != new and not _may_write(old, step):
        yield f"G3: {step.verb} was taken from attempt {step.which}, which does not hold the job"
    pair = (old.job.state, new.job.state)
    lines = new.transition_log[len(old.transition_log) :]
    logged = [(line.from_state, line.to_state) for line in lines] == [pair]
    if pair[0] != pair[1] and pair not in JOB.ordinary_pairs() and not (pair in JOB.logged_pairs() and logged):
        yield f"INV_003: {pair[0]} to {pair[1]} is not declared, or not on record"
    for number in ("attempt", "ended", "spared"):
        if getattr(new.job, number) < getattr(old.job, number):
            yield f"INV_003: {number} fell"
    if new.execution[: len(old.execution)] != old.execution:
        yield "INV_003: the row of an ended attempt was changed"
    if new.transition_log[: len(old.transition_log)] != old.transition_log:
        yield "INV_003: a line of the log was changed"
    after = new.executions()
    for attempt, state in old.executions().items():
        if after.get(attempt) not in REACHED[state]:
            yield f"INV_003: attempt {attempt} went from {state} to {after.get(attempt)}"


def _may_write(old: Database, step: Step) -> bool:
    """The holder may; and anyone may finish what is committed."""
    current = old.job.state == "running" and old.job.attempt == step.which
    committed = step.verb == "finish" and old.job.committed_at is not None
    return current and (committed or old.job.lease_id in old.live_leases())
