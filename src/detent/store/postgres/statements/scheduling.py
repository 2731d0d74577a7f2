"""The verbs of schedules."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from detent.errors import DetentError, NotFound
from detent.model.records import Moved
from detent.model.service_records import Fire, NewSchedule, ScheduleRow
from detent.store.postgres.statement import Row, Statement, moment, named, numbers, times, utc

__all__ = [
    "fire_stands_for",
    "schedule_due",
    "schedule_fire",
    "schedule_list",
    "schedule_pause",
    "schedule_put",
    "schedule_remove",
    "schedule_resume",
    "schedule_run",
]

_FIELDS = ScheduleRow.__struct_fields__
_ROW = ", ".join(_FIELDS)
_PUT = f"""
SELECT {_ROW} FROM detent.schedule_put_v1(
  %s::text, %s::text, %s::text, %s::text, %s::text, %s::text, %s::text, %s::text, %s::smallint, %s::integer,
  %s::boolean, %s::boolean, %s::boolean, %s::text, %s::timestamptz, %s::integer)
"""
_FIRE = """
SELECT detent.schedule_fire_v1(%s::text, %s::timestamptz, %s::timestamptz[], %s::bigint[], %s::timestamptz)
"""


def schedule_put(item: NewSchedule) -> Statement[ScheduleRow]:
    """The schedule as it stands then."""
    params = (
        *(item.name, item.tenant, item.cron, item.zone, item.catch_up, item.task, item.payload, item.queue),
        *(item.priority, item.attempts_max, item.dead_letter, item.idempotent, item.unique_pending, item.limit_key),
        *(moment(item.next_at, field="next_at"), item.cost),
    )
    return Statement(_PUT, params, lambda rows: _schedules(rows)[0])


def schedule_remove(name: str, actor: str, reason: str | None) -> Statement[Moved | DetentError]:
    """Its row goes."""
    sql = "SELECT detent.schedule_remove_v1(%s::text, %s::text, %s::text)"
    return Statement(sql, (name, actor, reason), lambda rows: _moved(name, rows, "removed"))


def schedule_pause(name: str, actor: str, reason: str | None) -> Statement[Moved | DetentError]:
    """Paused now, by this call or before."""
    sql = "SELECT detent.schedule_pause_v1(%s::text, %s::text, %s::text)"
    return Statement(sql, (name, actor, reason), lambda rows: _moved(name, rows, "paused"))


def schedule_resume(name: str, next_at: datetime, actor: str, reason: str | None) -> Statement[Moved | DetentError]:
    """Active now, by this call or before."""
    sql = "SELECT detent.schedule_resume_v1(%s::text, %s::timestamptz, %s::text, %s::text)"
    params = (name, moment(next_at, field="next_at"), actor, reason)
    return Statement(sql, params, lambda rows: _moved(name, rows, "active"))


def schedule_run(name: str, actor: str, reason: str | None) -> Statement[bool]:
    """Whether there is such a schedule: then its job must follow."""
    sql = "SELECT detent.schedule_run_v1(%s::text, %s::text, %s::text)"
    return Statement(sql, (name, actor, reason), lambda rows: rows[0][0] is not None)


def _moved(name: str, rows: Sequence[Row], state: str) -> Moved | DetentError:
    found = rows[0][0]
    return NotFound("schedule", name) if found is None else Moved(name, state, found != state)


def schedule_list() -> Statement[list[ScheduleRow]]:
    """By name."""
    return Statement(f"SELECT {_ROW} FROM detent.schedule_list_v1()", (), _schedules, writes=False)


def schedule_due(limit: int) -> Statement[list[ScheduleRow]]:
    """The longest due first."""
    return Statement(f"SELECT {_ROW} FROM detent.schedule_due_v1(%s::integer)", (limit,), _schedules, writes=False)


def _schedules(rows: Sequence[Row]) -> list[ScheduleRow]:
    return [ScheduleRow(**named(_FIELDS, row)) for row in rows]


def schedule_fire(
    name: str, expected: datetime, fires: Sequence[Fire], next_at: datetime
) -> Statement[set[datetime] | None]:
    """The ticks that nobody has dealt with before; None where somebody else was first."""
    params = (
        name,
        moment(expected, field="expected"),
        times((fire.fire_at for fire in fires), field="fire_at"),
        numbers(None if fire.job is None else fire.job.id for fire in fires),
        moment(next_at, field="next_at"),
    )
    return Statement(_FIRE, params, lambda rows: None if rows[0][0] is None else {utc(at) for at in rows[0][0]})


def fire_stands_for(name: str, job_id: int, holder: int) -> Statement[None]:
    """A tick whose job was there already."""
    sql = "SELECT detent.fire_stands_for_v1(%s::text, %s::bigint, %s::bigint)"
    return Statement(sql, (name, job_id, holder), lambda rows: None)
