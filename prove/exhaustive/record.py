"""The record of the reference model, frozen; and its canonical form, which says what may still happen."""

from __future__ import annotations

from typing import Any, NamedTuple

from detent.lifecycle.library import JOB
from prove.reference.model import Model
from prove.reference.rows import (
    Dead,
    Execution,
    FailureReport,
    Job,
    Lane,
    Lease,
    Queue,
    Ready,
    TransitionLog,
    Waiting,
)

__all__ = ["TABLES", "Effect", "Record"]

TABLES = (
    "job",
    "lane",
    "ready",
    "waiting",
    "lease",
    "execution",
    "transition_log",
    "dead",
    "failure_report",
    "queue",
)
"""What is compared after every move."""


class Effect(NamedTuple):
    """An effect in the user's table."""

    job_id: int
    attempt: int


class Record(NamedTuple):
    """The rows of the model at one moment, and the effects in the user's table."""

    clock: int
    jobs: tuple[Job, ...] = ()
    lanes: tuple[Lane, ...] = ()
    ready: tuple[Ready, ...] = ()
    waiting: tuple[Waiting, ...] = ()
    leases: tuple[Lease, ...] = ()
    executions: tuple[Execution, ...] = ()
    log: tuple[TransitionLog, ...] = ()
    dead: tuple[Dead, ...] = ()
    reports: tuple[FailureReport, ...] = ()
    queues: tuple[Queue, ...] = ()
    effects: tuple[Effect, ...] = ()

    @classmethod
    def of(cls, model: Model, effects: tuple[Effect, ...]) -> Record:
        """Freeze a model."""
        return cls(
            model.clock,
            tuple(model.job.values()),
            tuple(model.lane.values()),
            tuple(model.ready.values()),
            tuple(model.waiting.values()),
            tuple(model.lease.values()),
            tuple(model.execution.values()),
            tuple(model.transition_log),
            tuple(model.dead.values()),
            tuple(model.failure_report.values()),
            tuple(model.queue.values()),
            effects,
        )

    def thaw(self) -> Model:
        """Return a model with these rows."""
        model = Model(self.clock)
        model.job = {row.id: row for row in self.jobs}
        model.lane = {row: row for row in self.lanes}
        model.ready = {row.job_id: row for row in self.ready}
        model.waiting = {row.job_id: row for row in self.waiting}
        model.lease = {row.id: row for row in self.leases}
        model.execution = {(row.job_id, row.attempt): row for row in self.executions}
        model.transition_log = list(self.log)
        model.dead = {row.job_id: row for row in self.dead}
        model.failure_report = {(row.job_id, row.attempt): row for row in self.reports}
        model.queue = {row.name: row for row in self.queues}
        return model

    def job(self, job_id: int) -> Job | None:
        """Return a job, if it was enqueued."""
        return next((row for row in self.jobs if row.id == job_id), None)

    def holds(self, lease_id: int) -> bool:
        """Return whether a job runs under a lease."""
        return any(row.lease_id == lease_id and row.state == "running" for row in self.jobs)

    @property
    def clock_of_expiry(self) -> int | None:
        """Return when the pending job that expires does; None if there is none."""
        return next((row.expires_at for row in self.jobs if row.state == "pending" and row.expires_at), None)

    def part_of(self, job: Job) -> tuple[Any, ...]:
        """Return what decides on everything that may still happen to a job: no times, and nothing of its past that no
        verb asks for."""
        expired = sum(row.outcome == "expired" and not row.counted for row in self.executions if row.job_id == job.id)
        part = (job.id, job.state, job.attempt, job.spared, expired)
        match job.state:
            case "running":
                lease = next((row for row in self.leases if row.id == job.lease_id), None)
                is_live = lease and lease.expires_at > self.clock
                marks = (job.started_at, job.committed_at, job.cancel_requested_at, job.expires_at)
                return (*part, is_live, *(mark is not None for mark in marks))
            case "pending":
                is_waiting = any(row.job_id == job.id for row in self.waiting)
                return (*part, is_waiting, job.expires_at and job.expires_at > self.clock)
            case "quarantined":
                reason = next((row.reason for row in self.dead if row.job_id == job.id), "")
                return (*part, reason, *self._later(job))
            case _ if job.state in JOB.final:
                return (job.id, job.state)
            case _:
                return (*part, *self._later(job))

    def _later(self, job: Job) -> tuple[bool, bool]:
        """Return what decides where a retry puts a job."""
        return job.due_at > self.clock, job.expires_at is not None and job.expires_at > self.clock

    @property
    def key(self) -> tuple[Any, ...]:
        """Return the canonical form: the parts of both jobs, who is first in the queue, and whether one lease holds
        both. Records with the same form have the same future."""
        pending = [row for row in self.jobs if row.state == "pending"]
        running = [row for row in self.jobs if row.state == "running"]
        first = min(pending, key=lambda row: (row.due_at, row.id)).id if len(pending) == 2 else 0
        share = len(running) == 2 and running[0].lease_id == running[1].lease_id
        return (*(self.part_of(job) for job in sorted(self.jobs)), first, share)
