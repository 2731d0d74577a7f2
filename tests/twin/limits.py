"""The reference model of limits: how much room each has, and what uses it up."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from detent.errors import DetentError, NotFound
from detent.model.limit_records import NewLimit
from detent.model.records import Moved
from tests.twin.rows import LimitMember, LimitSlot, RateLimit, Ready
from tests.twin.rules import SECOND, Record, micros

THROTTLED_MAX = 5
OPEN = 60 * SECOND


class Limits(Record):
    """`limit_put` and `limit_reset`, and what claims and ends ask of limits."""

    def __init__(self, clock: int = 0) -> None:
        super().__init__(clock)
        self.rate_limit: dict[str, RateLimit] = {}
        self.limit_member: dict[tuple[str, str], LimitMember] = {}
        self.limit_slot: dict[tuple[str, int], LimitSlot] = {}

    def limit_put(self, item: NewLimit) -> None:
        old = self.rate_limit.get(item.key)
        fresh = RateLimit(item.key, item.rate, item.per, item.burst, item.concurrency_max, item.burst, self.clock)
        if old is not None:
            fresh = fresh._replace(
                tokens=item.burst if old.rate is None else min(self.tokens(old), item.burst),
                refilled_at=max(old.refilled_at, self.clock),
                paused_until=old.paused_until,
                throttled=old.throttled,
                throttled_at=old.throttled_at,
                open_until=old.open_until,
            )
        self.rate_limit[item.key] = fresh
        for kind, names in (("task", item.tasks), ("queue", item.queues)):
            for name in names:
                self.limit_member[kind, name] = LimitMember(kind, name, item.key)
        for job in self.job.values():
            if job.state == "running" and (job.task in item.tasks or job.queue in item.queues):
                self.limit_slot[item.key, job.id] = LimitSlot(item.key, job.id, job.attempt)

    def limit_reset(self, key: str, actor: str, reason: str | None = None) -> Moved | DetentError:
        row = self.rate_limit.get(key)
        if row is None:
            return NotFound("limit", key)
        paused = row.paused_until is not None and row.paused_until > self.clock
        found = "open" if row.open_until is not None else "paused" if paused else None
        if found is not None:
            self.log_of("limit", key, found, "closed", "reset", actor, reason)
        self.rate_limit[key] = row._replace(
            paused_until=None,
            throttled=0,
            throttled_at=None,
            open_until=None,
            tokens=row.burst,
            refilled_at=max(row.refilled_at, self.clock),
        )
        return Moved(key, "closed", found is not None)

    # -- for claims and ends -----------------------------------------------------------------------------------

    def rooms(self, queues: Sequence[str] | None, tasks: Sequence[str], most: int) -> dict[str, int]:
        """How many more jobs may begin under each of the limits that a claim of these meets."""
        keys = {
            member.limit_key
            for member in self.limit_member.values()
            if (member.name in tasks if member.kind == "task" else queues is None or member.name in queues)
        }
        for key in keys:
            self.sweep(key)
        return {key: self.room(self.rate_limit[key], most) for key in keys}

    def room(self, row: RateLimit, most: int) -> int:
        if any(until is not None and until > self.clock for until in (row.paused_until, row.open_until)):
            return 0
        running = sum(slot.limit_key == row.key for slot in self.limit_slot.values())
        room = most
        if row.concurrency_max is not None:
            room = min(room, row.concurrency_max - running)
        if row.open_until is not None:
            room = min(room, 1 - running)
        if row.rate is not None:
            room = min(room, int(self.tokens(row) + 1e-6))
        return max(room, 0)

    def fits(self, row: Ready, room: dict[str, int]) -> bool:
        return all(room[key] > 0 for key in self.under(row))

    def spend(self, row: Ready, room: dict[str, int]) -> None:
        """The job is about to be claimed: it runs under its limits from now on."""
        for key in self.under(row):
            room[key] -= 1
            limit = self.rate_limit[key]
            self.limit_slot[key, row.job_id] = LimitSlot(key, row.job_id, self.job[row.job_id].attempt + 1)
            if limit.rate is not None:
                left = max(self.tokens(limit) - 1, 0.0)
                self.rate_limit[key] = limit._replace(tokens=left, refilled_at=max(limit.refilled_at, self.clock))

    def under(self, row: Ready) -> set[str]:
        places = (("task", row.lane.task), ("queue", row.lane.queue))
        return {self.limit_member[place].limit_key for place in places if place in self.limit_member}

    def throttled(self, task: str, delay: float) -> None:
        """The other side said no."""
        member = self.limit_member.get(("task", task))
        if member is None:
            return
        self.sweep(member.limit_key)
        row = self.rate_limit[member.limit_key]
        opens = row.throttled >= THROTTLED_MAX
        self.rate_limit[row.key] = row._replace(
            throttled=row.throttled + 1,
            throttled_at=max(row.throttled_at or 0, self.clock),
            paused_until=max(row.paused_until or 0, self.clock + micros(delay)),
            open_until=max(row.open_until or 0, self.clock + OPEN) if opens else row.open_until,
        )

    def sweep(self, key: str) -> None:
        """Slots that no longer count go; a success since the last no closes the breaker."""
        gone = [slot for slot in self.limit_slot.values() if slot.limit_key == key and not self.counts(slot)]
        for slot in gone:
            del self.limit_slot[key, slot.job_id]
        done = max(self.successes(gone), default=None)
        row = self.rate_limit[key]
        if done is not None and row.throttled_at is not None and row.throttled_at <= done:
            self.rate_limit[key] = row._replace(throttled=0, throttled_at=None, open_until=None)

    def counts(self, slot: LimitSlot) -> bool:
        job = self.job.get(slot.job_id)
        return job is not None and job.state == "running" and job.attempt == slot.attempt

    def successes(self, slots: Sequence[LimitSlot]) -> Iterator[int]:
        for slot in slots:
            ended = self.execution.get((slot.job_id, slot.attempt))
            if ended is not None and ended.done_at is not None:
                yield ended.done_at

    def tokens(self, row: RateLimit) -> float:
        passed = max(self.clock - row.refilled_at, 0) / SECOND
        return min(row.burst, row.tokens + (row.rate or 0.0) / row.per * passed)
