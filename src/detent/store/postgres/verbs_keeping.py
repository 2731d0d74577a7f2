"""The verbs around the jobs, as one statement each."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from detent.errors import DetentError, NotFound
from detent.model.limit_records import Charge, Charged, LimitFilter, LimitRow, NewLimit
from detent.model.records import Enqueued, Moved, NewJob, Prunable, ResultsDropped
from detent.model.service_records import (
    Agenda,
    DeadGroup,
    DeclarationRow,
    Declared,
    DeclaredKind,
    Fire,
    IdentityRow,
    KeysForgotten,
    LimitsPruned,
    LinesPruned,
    NewOperation,
    NewSchedule,
    OperationRow,
    QueueRow,
    RecoveryRow,
    ScheduleRow,
    SilentRow,
    TaskTimes,
    WorkerRow,
    WorkerSeen,
)
from detent.store.limiting import ALL_LIMITS, LIMITS_MAX
from detent.store.postgres.driver.bounds import Bounds
from detent.store.postgres.driver.session import Session
from detent.store.postgres.statements import (
    declaring,
    keeping,
    limiting,
    moving,
    operating,
    retention,
    scheduling,
    silence,
)
from detent.store.postgres.statements.enqueue import job_enqueue
from detent.store.words import JobFilter

__all__ = ["PostgresKeeping"]


class PostgresKeeping:
    """The contract's words hold."""

    _session: Session
    _bounds: Bounds | None

    def identity_list(self) -> list[IdentityRow]:
        """Oldest first."""
        return self._session.run(keeping.identity_list())

    def identity_renew(self, actor: str, reason: str | None = None) -> IdentityRow:
        """It uses up one id, so that each identity has a first id of its own."""
        return self._session.run(keeping.identity_renew(actor, reason))

    def worker_seen(self, seen: WorkerSeen) -> Agenda:
        """One row of its own."""
        return self._session.run(keeping.worker_seen(seen))

    def worker_gone(self, worker_id: int) -> None:
        """Its row goes."""
        self._session.run(keeping.worker_gone(worker_id))

    def worker_list(self, within: float) -> list[WorkerRow]:
        """By name and id."""
        return self._session.run(keeping.worker_list(within))

    def service_take(self, name: str, holder: int, seconds: float) -> int | None:
        """One compare-and-set."""
        return self._session.run(keeping.service_take(name, holder, seconds))

    def service_drop(self, name: str, holder: int) -> None:
        """Expired from now on."""
        self._session.run(keeping.service_drop(name, holder))

    def declaration_put(self, kind: DeclaredKind, name: str, fingerprint: str, again: bool) -> Declared:
        """One row for each change."""
        return self._session.run(declaring.declaration_put(kind, name, fingerprint, again))

    def declaration_list(self) -> list[DeclarationRow]:
        """By kind and name."""
        return self._session.run(declaring.declaration_list())

    def schedule_put(self, item: NewSchedule) -> ScheduleRow:
        """One row by its name."""
        return self._session.run(scheduling.schedule_put(item))

    def schedule_remove(self, name: str, actor: str, reason: str | None = None) -> Moved | DetentError:
        """On record."""
        return self._session.run(scheduling.schedule_remove(name, actor, reason))

    def schedule_pause(self, name: str, actor: str, reason: str | None = None) -> Moved | DetentError:
        """On record."""
        return self._session.run(scheduling.schedule_pause(name, actor, reason))

    def schedule_resume(
        self, name: str, next_at: datetime, actor: str, reason: str | None = None
    ) -> Moved | DetentError:
        """On record."""
        return self._session.run(scheduling.schedule_resume(name, next_at, actor, reason))

    def schedule_run(self, name: str, job: NewJob, actor: str, reason: str | None = None) -> Enqueued | DetentError:
        """The line first, then the job, in one transaction."""

        def run(session: Session) -> Enqueued | DetentError:
            if not session.run(scheduling.schedule_run(name, actor, reason)):
                return NotFound("schedule", name)
            (answer,) = session.run(job_enqueue([job], notify=False))
            if isinstance(answer, DetentError):
                raise answer
            return answer

        return self._session.together(run)

    def schedule_list(self) -> list[ScheduleRow]:
        """By name."""
        return self._session.run(scheduling.schedule_list())

    def schedule_due(self, limit: int) -> list[ScheduleRow]:
        """The longest due first."""
        return self._session.run(scheduling.schedule_due(limit))

    def schedule_fire(
        self, name: str, expected: datetime, fires: Sequence[Fire], next_at: datetime
    ) -> list[int] | None:
        """The ticks first, then the jobs of those that are new, in one transaction."""

        def fire(session: Session) -> list[int] | None:
            fresh = session.run(scheduling.schedule_fire(name, expected, fires, next_at))
            if fresh is None:
                return None
            jobs = [one.job for one in fires if one.job is not None and one.fire_at in fresh]
            made = []
            answers = session.run(job_enqueue(jobs, notify=False)) if jobs else []
            for job, answer in zip(jobs, answers, strict=True):
                if isinstance(answer, DetentError):
                    raise answer
                if answer.created:
                    made.append(job.id)
                else:
                    session.run(scheduling.fire_stands_for(name, job.id, answer.job_id))
            return made

        return self._session.together(fire)

    def job_count(self, chosen: JobFilter) -> int:
        """From the view, which walks through no job at rest."""
        return self._session.run(operating.job_count(chosen))

    def counts_fold(self, limit: int) -> int:
        """How many changes were added."""
        return self._session.run(operating.counts_fold(limit))

    def job_move(
        self, ids: Sequence[int], queue: str | None, priority: int | None, actor: str, reason: str | None = None
    ) -> list[Moved | DetentError]:
        """In the order of the ids, so that nobody waits crosswise."""
        answers = self._session.run(operating.job_move(ids, queue, priority, actor, reason)) if ids else []
        self._forget_bounds()
        return answers

    def operation_start(self, item: NewOperation) -> OperationRow:
        """One row by its id."""
        return self._session.run(operating.operation_start(item))

    def operation_step(self, operation_id: int, limit: int) -> OperationRow | DetentError:
        """What it was asked for is read first: it never changes."""
        row = self.operation_get(operation_id)
        if row is None:
            return NotFound("operation", str(operation_id))
        stepped = self._session.run(operating.operation_step(row, limit))
        self._forget_bounds()
        return stepped

    def operation_skip(self, operation_id: int) -> OperationRow | DetentError:
        """One update of its row."""
        return self._session.run(operating.operation_skip(operation_id))

    def operation_cancel(self, operation_id: int, actor: str, reason: str | None = None) -> Moved | DetentError:
        """On record."""
        return self._session.run(operating.operation_cancel(operation_id, actor, reason))

    def operation_get(self, operation_id: int) -> OperationRow | None:
        """By its id."""
        return self._session.run(operating.operation_get(operation_id))

    def operation_list(self, state: str | None = None, limit: int = 100) -> list[OperationRow]:
        """The newest first."""
        return self._session.run(operating.operation_list(state, limit))

    def job_silent(
        self,
        queue: str | None,
        stale_after: float | None,
        stalled_after: float | None,
        limit: int,
        lease_ids: Sequence[int] | None = None,
    ) -> list[SilentRow]:
        """Found through their leases."""
        return self._session.run(silence.job_silent(queue, stale_after, stalled_after, limit, lease_ids))

    def times_put(self, items: Sequence[TaskTimes]) -> None:
        """A row for each that says something."""
        if items:
            self._session.run(silence.times_put(items))

    def times_list(self) -> list[TaskTimes]:
        """By name."""
        return self._session.run(silence.times_list())

    def result_drop(self, after_id: int, limit: int) -> ResultsDropped:
        """A walk along the ids."""
        return self._session.run(silence.result_drop(after_id, limit))

    def job_prunable(
        self, before: datetime, after_id: int, limit: int, states: Sequence[str] | None = None
    ) -> Prunable:
        """Locked until the transaction ends."""
        return self._session.run(moving.job_prunable(before, after_id, limit, states))

    def job_drop(self, ids: Sequence[int], before: datetime, actor: str) -> int:
        """The horizon first: the guards let nothing go that is not below it."""
        return self._session.run(moving.job_drop(ids, before, actor)) if ids else 0

    def key_expire(self, limit: int) -> int:
        """The longest expired first."""
        return self._session.run(retention.key_expire(limit))

    def key_forget(self, after: tuple[str, str], limit: int) -> KeysForgotten:
        """A walk along the keys."""
        return self._session.run(retention.key_forget(after, limit))

    def limit_prune(self, after: str, limit: int) -> LimitsPruned:
        """A walk along the limits."""
        return self._session.run(retention.limit_prune(after, limit))

    def log_prune(self, before: datetime, after: int, limit: int, actor: str) -> LinesPruned:
        """The horizon first: the guards let nothing go that is not below it."""
        return self._session.run(retention.log_prune(before, after, limit, actor))

    def recovery_set(
        self,
        queue: str,
        stale_after: float | None,
        stalled_after: float | None,
        actor: str,
        reason: str | None = None,
    ) -> Moved:
        """On record."""
        return self._session.run(silence.recovery_set(queue, stale_after, stalled_after, actor, reason))

    def recovery_list(self) -> list[RecoveryRow]:
        """By name."""
        return self._session.run(silence.recovery_list())

    def limit_put(self, item: NewLimit) -> None:
        """One row by its key."""
        self._session.run(limiting.limit_put(item))

    def limit_list(self, chosen: LimitFilter = ALL_LIMITS, after: str = "", limit: int = LIMITS_MAX) -> list[LimitRow]:
        """By key."""
        return self._session.run(limiting.limit_list(chosen, after, limit))

    def limit_refill(self, queues: Sequence[str] | None, tasks: Sequence[str]) -> float | None:
        """One number."""
        return self._session.run(limiting.limit_refill(queues, tasks))

    def limit_close(self, after: str, limit: int) -> str | None:
        """The key to go on after."""
        return self._session.run(limiting.limit_close(after, limit))

    def limit_pause(self, key: str, actor: str, reason: str | None = None) -> Moved | DetentError:
        """On record."""
        return self._session.run(limiting.limit_pause(key, actor, reason))

    def limit_reset(self, key: str, actor: str, reason: str | None = None) -> Moved | DetentError:
        """On record."""
        return self._session.run(limiting.limit_reset(key, actor, reason))

    def limit_remove(self, key: str, actor: str, reason: str | None = None) -> Moved | DetentError:
        """On record."""
        return self._session.run(limiting.limit_remove(key, actor, reason))

    def limit_charge(self, items: Sequence[Charge]) -> list[Charged | DetentError]:
        """A function."""
        return self._session.run(limiting.limit_charge(items)) if items else []

    def dead_report(self, task: str | None, queue: str | None, tenant: str | None, limit: int) -> list[DeadGroup]:
        """Grouped by the server."""
        return self._session.run(operating.dead_report(task, queue, tenant, limit))

    def queue_list(self) -> list[QueueRow]:
        """By name."""
        return self._session.run(keeping.queue_list())

    def untold_take(self, tasks: Sequence[str], limit: int, seconds: float) -> list[tuple[int, int]]:
        """By their ids."""
        return self._session.run(keeping.untold_take(tasks, limit, seconds))

    def untold_keep(self, failures: Sequence[tuple[int, int]], seconds: float) -> None:
        """By a later time in their rows."""
        self._session.run(keeping.untold_keep(failures, seconds))

    def untold_done(self, failures: Sequence[tuple[int, int]]) -> None:
        """Their rows go."""
        self._session.run(keeping.untold_done(failures))

    def _forget_bounds(self) -> None:
        """What was moved or brought back may stand below what was claimed."""
        if self._bounds is not None:
            self._bounds.forget()
