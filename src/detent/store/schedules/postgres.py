"""Schedules and declarations on PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from detent.errors import DetentError, NotFound
from detent.model.records import Enqueued, Moved, NewJob
from detent.model.service_records import DeclarationRow, Declared, DeclaredKind, Fire, NewSchedule, ScheduleRow
from detent.store.jobs.postgres_enqueue import job_enqueue
from detent.store.postgres.driver.session import Session
from detent.store.postgres.statement import Row, Statement, moment, named, numbers, times, utc
from detent.store.postgres.verb_base import VerbBase, runs

__all__ = ["PostgresSchedules"]

_FIELDS = ScheduleRow.__struct_fields__
_ROW = ", ".join(_FIELDS)
_PUT = f"""
SELECT {_ROW} FROM detent.schedule_put_v2(
  %s::text, %s::text, %s::text, %s::text, %s::text, %s::text, %s::text, %s::text, %s::smallint, %s::integer,
  %s::boolean, %s::boolean, %s::boolean, %s::text, %s::timestamptz, %s::integer, %s::text, %s::text)
"""
_FIRE = """
SELECT detent.schedule_fire_v1(%s::text, %s::timestamptz, %s::timestamptz[], %s::bigint[], %s::timestamptz)
"""


def schedule_put(item: NewSchedule, actor: str = "client", reason: str | None = None) -> Statement[ScheduleRow]:
    params = (
        *(item.name, item.tenant, item.cron, item.zone, item.catch_up, item.task, item.payload, item.queue),
        *(item.priority, item.attempts_max, item.dead_letter, item.idempotent, item.unique_pending, item.limit_key),
        *(moment(item.next_at, field="next_at"), item.cost, actor, reason),
    )
    return Statement(_PUT, params, lambda rows: _schedules(rows)[0])


def schedule_remove(name: str, actor: str, reason: str | None = None) -> Statement[Moved | DetentError]:
    sql = "SELECT detent.schedule_remove_v1(%s::text, %s::text, %s::text)"
    return Statement(sql, (name, actor, reason), lambda rows: _moved(name, rows, "removed"))


def schedule_pause(name: str, actor: str, reason: str | None = None) -> Statement[Moved | DetentError]:
    sql = "SELECT detent.schedule_pause_v1(%s::text, %s::text, %s::text)"
    return Statement(sql, (name, actor, reason), lambda rows: _moved(name, rows, "paused"))


def schedule_resume(
    name: str, next_at: datetime, actor: str, reason: str | None = None
) -> Statement[Moved | DetentError]:
    sql = "SELECT detent.schedule_resume_v1(%s::text, %s::timestamptz, %s::text, %s::text)"
    params = (name, moment(next_at, field="next_at"), actor, reason)
    return Statement(sql, params, lambda rows: _moved(name, rows, "active"))


def _log_run(name: str, actor: str, reason: str | None) -> Statement[bool]:
    """Record that a schedule is run out of turn. The answer is False if there is no such schedule."""
    sql = "SELECT detent.schedule_run_v1(%s::text, %s::text, %s::text)"
    return Statement(sql, (name, actor, reason), lambda rows: rows[0][0] is not None)


def _moved(name: str, rows: Sequence[Row], state: str) -> Moved | DetentError:
    found = rows[0][0]
    return NotFound("schedule", name) if found is None else Moved(name, state, found != state)


def schedule_list() -> Statement[list[ScheduleRow]]:
    return Statement(f"SELECT {_ROW} FROM detent.schedule_list_v1()", (), _schedules, writes=False)


def schedule_due(limit: int) -> Statement[list[ScheduleRow]]:
    return Statement(f"SELECT {_ROW} FROM detent.schedule_due_v1(%s::integer)", (limit,), _schedules, writes=False)


def _schedules(rows: Sequence[Row]) -> list[ScheduleRow]:
    return [ScheduleRow(**named(_FIELDS, row)) for row in rows]


def _fire(name: str, expected: datetime, fires: Sequence[Fire], next_at: datetime) -> Statement[set[datetime] | None]:
    """Record ticks. The answer is those that are new; None if another caller was first."""
    params = (
        name,
        moment(expected, field="expected"),
        times((fire.fire_at for fire in fires), field="fire_at"),
        numbers(None if fire.job is None else fire.job.id for fire in fires),
        moment(next_at, field="next_at"),
    )
    return Statement(_FIRE, params, lambda rows: None if rows[0][0] is None else {utc(at) for at in rows[0][0]})


def _fire_stands_for(name: str, job_id: int, holder: int) -> Statement[None]:
    """Record that an equal job, which waits under the same key, stands for the job of a tick."""
    sql = "SELECT detent.fire_stands_for_v1(%s::text, %s::bigint, %s::bigint)"
    return Statement(sql, (name, job_id, holder), lambda rows: None)


_DECLARATION = DeclarationRow.__struct_fields__


def declaration_put(kind: DeclaredKind, name: str, fingerprint: str, again: bool) -> Statement[Declared]:
    sql = "SELECT detent.declaration_put_v1(%s::text, %s::text, %s::text, %s::boolean)"
    return Statement(sql, (kind, name, fingerprint, again), lambda rows: rows[0][0])


def declaration_list() -> Statement[list[DeclarationRow]]:
    sql = f"SELECT {', '.join(_DECLARATION)} FROM detent.declaration_list_v1()"
    return Statement(sql, (), lambda rows: [DeclarationRow(**named(_DECLARATION, row)) for row in rows], writes=False)


class PostgresSchedules(VerbBase):
    """The verbs of schedules and declarations."""

    schedule_put = runs(schedule_put)
    schedule_remove = runs(schedule_remove)
    schedule_pause = runs(schedule_pause)
    schedule_resume = runs(schedule_resume)
    schedule_list = runs(schedule_list)
    schedule_due = runs(schedule_due)
    declaration_put = runs(declaration_put)
    declaration_list = runs(declaration_list)

    def schedule_run(self, name: str, job: NewJob, actor: str, reason: str | None = None) -> Enqueued | DetentError:
        def run(session: Session) -> Enqueued | DetentError:
            if not session.run(_log_run(name, actor, reason)):
                return NotFound("schedule", name)
            (answer,) = session.run(job_enqueue([job], notify=False))
            if isinstance(answer, DetentError):
                raise answer
            return answer

        return self._session.together(run)

    def schedule_fire(
        self, name: str, expected: datetime, fires: Sequence[Fire], next_at: datetime
    ) -> list[int] | None:
        """Record the ticks, then enqueue the jobs of those that are new."""

        def fire(session: Session) -> list[int] | None:
            fresh = session.run(_fire(name, expected, fires, next_at))
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
                    session.run(_fire_stands_for(name, job.id, answer.job_id))
            return made

        return self._session.together(fire)
