"""Due ticks of schedules: enqueue their jobs.

A tick that no worker was running for is missed. The option `catch_up` of a schedule decides what happens then:

- `latest`: enqueue one job for the most recent tick, and skip the others;
- `all`: enqueue one job for each tick;
- `skip`: skip ticks that are more than a minute late.

Any number of processes may do this at once: each tick is handled by one of them (J11).
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
from detent.model.json_codec import fingerprint, unique_key
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
"""The next tick of a schedule that is declared and not written yet."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The due ticks, which of them enqueue jobs, and the next tick after them."""

    ticks: Sequence[datetime]
    fires: frozenset[datetime]
    next_at: datetime


def plan(row: ScheduleRow, now: datetime) -> Plan:
    """Return what to do for a schedule at `now`, for at most a thousand ticks at a time."""
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


def _log_skipped(name: str, error: Exception) -> None:
    log.error("Schedule %s cannot be read and is skipped: %r", name, error)


def fire_due(verbs: Verbs, ids: Ids, on_damage: Callable[[str, Exception], None] = _log_skipped) -> list[int]:
    """Enqueue the jobs of every due tick, and return their ids.

    A schedule that cannot be read here, because it is damaged or because this machine does not know its zone, is passed
    to `on_damage` and skipped. The others go on.
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
                on_damage(row.name, error)
                unreadable.add(row.name)
    return made


def _fire(verbs: Verbs, ids: Ids, row: ScheduleRow, now: datetime) -> list[int]:
    doing = plan(row, now)
    numbers = iter(ids.take(len(doing.fires)) if doing.fires else [])
    nonce = ids.nonce()
    fires = [Fire(tick, _job(row, tick, next(numbers), nonce) if tick in doing.fires else None) for tick in doing.ticks]
    return verbs.schedule_fire(row.name, row.next_at, fires, doing.next_at) or []


def job_now(row: ScheduleRow, job_id: int, nonce: int, actor: str) -> NewJob:
    """Return the job of a schedule that is run now, outside its ticks."""
    return _new_job(row, None, {"schedule": row.name, "run_by": actor}, job_id, nonce)


def _job(row: ScheduleRow, tick: datetime, job_id: int, nonce: int) -> NewJob:
    return _new_job(row, tick, {"schedule": row.name, "tick": tick.isoformat()}, job_id, nonce)


def _new_job(row: ScheduleRow, due_at: datetime | None, metadata: dict[str, str], job_id: int, nonce: int) -> NewJob:
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
        metadata=msgspec.json.encode(metadata).decode(),
        attempts_max=row.attempts_max,
        dead_letter=row.dead_letter,
        idempotent=row.idempotent,
        limit_key=row.limit_key,
        cost=row.cost,
        unique_pending=row.unique_pending,
        key=unique_key(row.task, own) if row.unique_pending else None,
    )


def from_now(item: NewSchedule, now: datetime) -> NewSchedule:
    """Return the schedule with its first tick after `now`."""
    return replace(item, next_at=next_tick(item.cron, item.zone, now))


def upcoming(row: ScheduleRow, count: int) -> list[datetime]:
    """Return the next ticks of a schedule."""
    return [row.next_at, *islice(ticks_after(row.cron, row.zone, row.next_at), count - 1)]
