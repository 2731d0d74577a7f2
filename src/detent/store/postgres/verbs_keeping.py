"""The verbs around the jobs, as one statement each."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from detent.errors import DetentError, NotFound
from detent.model.limit_records import Charge, Charged, LimitFilter, LimitRow, NewLimit
from detent.model.records import Enqueued, Moved, NewJob
from detent.model.service_records import (
    Agenda,
    DeclarationRow,
    Declared,
    DeclaredKind,
    Fire,
    LimitsPruned,
    NewSchedule,
    ScheduleRow,
    WorkerRow,
    WorkerSeen,
)
from detent.store.jobs.postgres_enqueue import job_enqueue
from detent.store.limiting import ALL_LIMITS, LIMITS_MAX
from detent.store.postgres.driver.session import Session
from detent.store.postgres.statements import declaring, keeping, limiting, scheduling
from detent.store.postgres.verb_base import VerbBase

__all__ = ["PostgresKeeping"]


class PostgresKeeping(VerbBase):
    """The contract's words hold."""

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

    def limit_prune(self, after: str, limit: int) -> LimitsPruned:
        """A walk along the limits."""
        return self._session.run(limiting.limit_prune(after, limit))

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
