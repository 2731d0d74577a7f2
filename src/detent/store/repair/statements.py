"""The actions of a repair, the same on both databases, each by a statement in the SQL of the database."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from detent.store.repair.job_projection import DeadRow, Execution, Facts, Job, Key, Line, Projection, Queued
from detent.store.repair.plan import LogLine

__all__ = ["RepairActions", "Statements"]


class Statements(NamedTuple):
    """The statements. Those that read take a list of ids (`RepairActions._listed`); the others take single values."""

    jobs: str
    executions: str
    lines: str
    queued: str
    dead: str
    keys: str
    leased: str
    jobs_of_lines: str
    log: str
    set_job: str
    new_group: str
    new_lane: str
    to_ready: str
    to_waiting: str
    not_ready: str
    not_waiting: str
    add_dead: str
    remove_dead: str
    name_in_lease: str
    new_lease: str
    drop_key: str
    free_slot: str
    recount: str
    count_finished: str
    list_jobs: tuple[str, ...]
    new_id: str


class RepairActions(ABC):
    """The part of `RepairDatabase` that both share: a database adds its statements, its time, and how to run one."""

    def __init__(self, statements: Statements, now: Any) -> None:
        self._sql = statements
        self._now = now

    @abstractmethod
    def _execute(self, sql: str, params: Any = ()) -> tuple[list[tuple[Any, ...]], int]:
        """Run a statement; return its rows, and how many it changed."""

    @abstractmethod
    def _listed(self, ids: Sequence[int]) -> Any:
        """Return a list of ids as one parameter of this database."""

    # -- looking -----------------------------------------------------------------------------------------------

    def jobs_of_lines(self, numbers: Sequence[int]) -> dict[int, int]:
        return dict(self._of(self._sql.jobs_of_lines, numbers))

    def facts(self, job_ids: Sequence[int]) -> list[Facts]:
        executions = self._by_job(self._sql.executions, job_ids, Execution._make)
        lines = self._by_job(self._sql.lines, job_ids, Line._make)
        queued = self._by_job(self._sql.queued, job_ids, Queued._make)
        dead = self._by_job(self._sql.dead, job_ids, DeadRow._make)
        keys = self._by_job(self._sql.keys, job_ids, Key._make)
        leased = {job_id for (job_id,) in self._of(self._sql.leased, job_ids)}
        return [
            Facts(
                job,
                tuple(executions[job.id]),
                tuple(lines[job.id]),
                tuple(queued[job.id]),
                next(iter(dead[job.id]), None),
                job.id in leased,
                tuple(keys[job.id]),
            )
            for job in map(Job._make, self._of(self._sql.jobs, job_ids))
        ]

    def _of(self, sql: str, ids: Sequence[int]) -> list[Any]:
        return self._execute(sql, (self._listed(ids),))[0]

    def _by_job(self, sql: str, job_ids: Sequence[int], make: Callable[[Any], Any]) -> dict[int, list[Any]]:
        found: dict[int, list[Any]] = defaultdict(list)
        for row in self._of(sql, job_ids):
            found[row[0]].append(make(row))
        return found

    # -- doing -------------------------------------------------------------------------------------------------

    def log(self, line: LogLine, actor: str, reason: str) -> None:
        what = (line.tenant, line.entity, line.entity_id, line.job_id, line.attempt, line.from_state, line.to_state)
        self._execute(self._sql.log, (*what, actor, reason, line.metadata, line.correlation_id, self._now))

    def set_job(self, job: Job, to: Projection) -> None:
        leased = to.state == "running"
        values = {name: getattr(to, name) for name in ("state", "attempt", "ended", "spared", "due_at", "error")}
        values |= {
            "id": job.id,
            "found": job.state,
            "finished_at": to.finished_at,
            "committed_at": to.committed_at,
            "lease_id": self._new_id() if leased and job.lease_id is None else job.lease_id,
            "leased_at": self._now if leased and to.leased_at is None else to.leased_at,
        }
        self._execute(self._sql.set_job, values)

    def queue(self, job: Job, due_at: Any, holds_key: bool) -> None:
        self.unqueue(job.id)
        lane = (job.queue, job.task, job.tenant, job.priority, job.limit_key or "")
        self._execute(self._sql.new_group, lane[:2])
        self._execute(self._sql.new_lane, lane)
        if due_at <= self._now:
            self._execute(self._sql.to_ready, (*lane, due_at, job.id, holds_key, job.expires_at))
        else:
            self._execute(self._sql.to_waiting, (*lane, due_at, job.id, holds_key, job.expires_at, job.priority))

    def unqueue(self, job_id: int) -> None:
        self._execute(self._sql.not_ready, (job_id,))
        self._execute(self._sql.not_waiting, (job_id,))

    def add_dead(self, job: Job, reason: str, at: Any) -> None:
        self.remove_dead(job.id)
        self._execute(self._sql.add_dead, (job.id, job.tenant, job.queue, job.task, reason, at))

    def remove_dead(self, job_id: int) -> None:
        self._execute(self._sql.remove_dead, (job_id,))

    def lease(self, job_id: int) -> None:
        if not self._execute(self._sql.name_in_lease, {"job": job_id})[1]:
            self._execute(self._sql.new_lease, {"job": job_id, "now": self._now})

    def drop_key(self, key: Key) -> None:
        self._execute(self._sql.drop_key, key)

    def free_slot(self, limit_key: str, job_id: int) -> None:
        self._execute(self._sql.free_slot, (limit_key, job_id))

    def recount(self, run_id: int) -> None:
        self._execute(self._sql.recount, (run_id,))

    def count_finished(self) -> None:
        self._execute(self._sql.count_finished)

    def list_jobs(self) -> None:
        for statement in self._sql.list_jobs:
            self._execute(statement)

    def _new_id(self) -> int:
        ((new,),) = self._execute(self._sql.new_id)[0]
        return int(new)
