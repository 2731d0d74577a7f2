"""What becomes of the ticks that have come.

A tick that nobody was there for is missed. What happens then is the schedule's own choice, `catch_up`:

- `latest`: of all ticks that have come, the newest makes a job, and the others are passed over;
- `all`: each makes a job;
- `skip`: those that came more than a minute ago are passed over.

Any number of schedulers may do this at once: each tick is dealt with by one of them (J11).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import assert_never

import msgspec
from msgspec.structs import replace

from detent.model.ids import Ids
from detent.model.jsondoor import fingerprint, unique_key
from detent.model.records import NewJob
from detent.model.service_records import Fire, NewSchedule, ScheduleRow
from detent.schedule.cron import next_tick, ticks_after
from detent.store.contract import Verbs
from detent.store.row_errors import is_of_one_row

__all__ = ["NEVER", "Plan", "fire_due", "from_now", "job_now", "plan", "upcoming"]

log = logging.getLogger("detent.schedule")

_SCHEDULES_AT_ONCE = 1000
_TICKS_AT_ONCE = 1000
_MISSED_AFTER = timedelta(minutes=1)

NEVER = datetime.max.replace(tzinfo=UTC)
"""The first tick of a schedule that is declared and not written yet."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The ticks that have come, which of them make jobs, and the tick after them."""

    ticks: Sequence[datetime]
    fires: frozenset[datetime]
    next_at: datetime


def plan(row: ScheduleRow, now: datetime) -> Plan:
    """What to do about a schedule at `now`; about a thousand ticks at a time, however many were missed."""
    following = ticks_after(row.cron, row.zone, row.next_at)
    ticks = [row.next_at]
    while (coming := next(following)) <= now and len(ticks) < _TICKS_AT_ONCE:
        ticks.append(coming)
    match row.catch_up:
        case "all":
            chosen = ticks
        case "latest":
            chosen = ticks[-1:] if coming > now else []
        case "skip":
            chosen = [tick for tick in ticks if now - tick <= _MISSED_AFTER]
        case _:
            assert_never(row.catch_up)
    return Plan(ticks, frozenset(chosen), coming)


def _log_bad(name: str, error: Exception) -> None:
    log.error("schedule %s cannot be fired and is passed over: %r", name, error)


def fire_due(verbs: Verbs, ids: Ids, bad: Callable[[str, Exception], None] = _log_bad) -> list[int]:
    """Deal with every tick that has come; the jobs that were made of them by this caller.

    A schedule that cannot be read here, such as one of a zone that this machine does not know, or that is damaged, is
    given to `bad` and passed over. The others go on.
    """
    made: list[int] = []
    unreadable: set[str] = set()
    while due := [row for row in verbs.schedule_due(_SCHEDULES_AT_ONCE) if row.name not in unreadable]:
        now = verbs.now()
        for row in due:
            try:
                made += _fire(verbs, ids, row, now)
            except Exception as error:
                if not is_of_one_row(error):
                    raise
                bad(row.name, error)
                unreadable.add(row.name)
    return made


def _fire(verbs: Verbs, ids: Ids, row: ScheduleRow, now: datetime) -> list[int]:
    doing = plan(row, now)
    numbers = iter(ids.take(len(doing.fires)) if doing.fires else [])
    nonce = ids.nonce()
    fires = [Fire(tick, _job(row, tick, next(numbers), nonce) if tick in doing.fires else None) for tick in doing.ticks]
    return verbs.schedule_fire(row.name, row.next_at, fires, doing.next_at) or []


def job_now(row: ScheduleRow, job_id: int, nonce: int, actor: str) -> NewJob:
    """Return the job of a schedule that is run now, out of turn."""
    return _new_job(row, None, {"schedule": row.name, "run_by": actor}, job_id, nonce)


def _job(row: ScheduleRow, tick: datetime, job_id: int, nonce: int) -> NewJob:
    return _new_job(row, tick, {"schedule": row.name, "tick": tick.isoformat()}, job_id, nonce)


def _new_job(row: ScheduleRow, due_at: datetime | None, told: dict[str, str], job_id: int, nonce: int) -> NewJob:
    own = fingerprint(row.task, row.payload)
    return NewJob(
        id=job_id,
        task=row.task,
        payload=row.payload,
        nonce=nonce,
        fingerprint=own,
        tenant=row.tenant,
        queue=row.queue,
        priority=row.priority,
        due_at=due_at,
        metadata=msgspec.json.encode(told).decode(),
        attempts_max=row.attempts_max,
        dead_letter=row.dead_letter,
        idempotent=row.idempotent,
        limit_key=row.limit_key,
        cost=row.cost,
        unique_pending=row.unique_pending,
        key=unique_key(row.task, own) if row.unique_pending else None,
    )


def from_now(item: NewSchedule, now: datetime) -> NewSchedule:
    """The schedule with its first tick after `now`."""
    return replace(item, next_at=next_tick(item.cron, item.zone, now))


def upcoming(row: ScheduleRow, count: int) -> list[datetime]:
    """The next ticks of a schedule, as far as it stands."""
    return [row.next_at, *islice(ticks_after(row.cron, row.zone, row.next_at), count - 1)]
