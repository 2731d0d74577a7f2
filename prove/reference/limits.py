"""The reference model of limits: how much room each has, and what uses it up."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from detent.errors import DetentError, InUse, NotFound
from detent.model.limit_records import Charge, Charged, NewLimit
from detent.model.records import Moved
from detent.model.service_records import LimitsPruned
from prove.reference.rows import Job, Lane, LimitMember, LimitSlot, RateLimit, Ready
from prove.reference.rules import SECOND, Record, micros

THROTTLED_MAX = 5
OPEN = 60 * SECOND


class Limits(Record):
    """The verbs of limits, and what claims and ends ask of them."""

    def __init__(self, clock: int = 0) -> None:
        super().__init__(clock)
        self.rate_limit: dict[str, RateLimit] = {}
        self.limit_member: dict[tuple[str, str], LimitMember] = {}
        self.limit_slot: dict[tuple[str, int], LimitSlot] = {}
        self.templates: dict[str, str] = {}
        self.bursts: dict[str, float] = {}
        self.left: dict[str, float] = {}

    def limit_put(self, item: NewLimit, actor: str = "client", reason: str | None = None) -> None:
        self._log_bounds(item, self.rate_limit.get(item.key), actor, reason)
        bounds = {name: getattr(item, name) for name in ("rate", "per", "burst", "concurrency_max")}
        self.rate_limit.setdefault(item.key, RateLimit(item.key, **bounds, tokens=item.burst, refilled_at=self.clock))
        for old in list(self.rate_limit.values()):
            if item.key in (old.key, old.template):
                self.rate_limit[old.key] = old._replace(
                    **bounds,
                    tokens=item.burst if old.rate is None else min(self.tokens(old), item.burst),
                    refilled_at=max(old.refilled_at, self.clock),
                    template=None if old.key == item.key else old.template,
                )
        for kind, names in (("task", item.tasks), ("queue", item.queues)):
            for name in names:
                self.limit_member[kind, name] = LimitMember(kind, name, item.key)
        for job in self.job.values():
            if job.state == "running" and (job.task in item.tasks or job.queue in item.queues):
                key = (job.limit_key if job.task in item.tasks else None) or item.key
                if key != item.key:
                    self.make(key, item.key)
                old_slot = self.limit_slot.get((key, job.id))
                self.limit_slot[key, job.id] = LimitSlot(key, job.id, job.attempt, old_slot.cost if old_slot else 0.0)

    def _log_bounds(self, item: NewLimit, was: RateLimit | None, actor: str, reason: str | None) -> None:
        wanted = (item.rate, item.per, item.burst, item.concurrency_max)
        if was is not None and (was.rate, was.per, was.burst, was.concurrency_max) == wanted:
            return
        stands = "closed"
        if was is not None and (was.held_at is not None or was.open_until is not None):
            stands = "paused" if was.held_at is not None else "half open"
        before, trigger = (None, "create") if was is None else (stands, "change")
        self.log_of("limit", item.key, before, stands, trigger, actor, reason, metadata=item.bounds_text)

    def limit_pause(self, key: str, actor: str, reason: str | None = None) -> Moved | DetentError:
        if (template := self.template(key, self.lane.values())) is not None:
            self.make(key, template)
        row = self.rate_limit.get(key)
        if row is None:
            return NotFound("limit", key)
        if row.held_at is None:
            stood = "closed" if row.open_until is None else "half open"
            self.log_of("limit", key, stood, "paused", "pause", actor, reason)
            self.rate_limit[key] = row._replace(held_at=self.clock)
        return Moved(key, "paused", row.held_at is None)

    def limit_reset(self, key: str, actor: str, reason: str | None = None) -> Moved | DetentError:
        row = self.rate_limit.get(key)
        if row is None:
            return NotFound("limit", key)
        paused = row.held_at is not None or (row.paused_until is not None and row.paused_until > self.clock)
        found = "open" if row.open_until is not None else "paused" if paused else None
        if found is not None:
            self.log_of("limit", key, found, "closed", "reset", actor, reason)
        self.rate_limit[key] = row._replace(
            paused_until=None,
            held_at=None,
            throttled=0,
            throttled_at=None,
            open_until=None,
            tokens=row.burst,
            refilled_at=max(row.refilled_at, self.clock),
        )
        return Moved(key, "closed", found is not None)

    def limit_remove(self, key: str, actor: str, reason: str | None = None) -> Moved | DetentError:
        row = self.rate_limit.get(key)
        if row is None:
            return NotFound("limit", key)
        keys = {one.key for one in self.rate_limit.values() if key in (one.key, one.template)}

        def is_under(lane: Lane) -> bool:
            if row.template is not None:
                return lane.limit_key == key
            members = [self.limit_member.get(place) for place in (("task", lane.task), ("queue", lane.queue))]
            return any(member is not None and member.limit_key == key for member in members)

        lanes = [one.lane for one in self.ready.values()] + [one.lane for one in self.waiting.values()]
        waits = [lane for lane in lanes if is_under(lane)]
        runs = {slot.job_id for slot in self.limit_slot.values() if slot.limit_key in keys and self.counts(slot)}
        if waits or runs:
            return InUse("limit", key, len(waits) + len(runs))
        stood = "closed" if row.held_at is None else "paused"
        self.log_of("limit", key, stood, "removed", "remove", actor, reason)
        self.rate_limit = {name: one for name, one in self.rate_limit.items() if name not in keys}
        self.limit_slot = {place: one for place, one in self.limit_slot.items() if one.limit_key not in keys}
        self.limit_member = {place: one for place, one in self.limit_member.items() if one.limit_key != key}
        return Moved(key, "removed", True)

    # -- for claims and ends -----------------------------------------------------------------------------------

    def rooms(
        self, queues: Sequence[str] | None, tasks: Sequence[str], most: int, wanted: Sequence[Ready]
    ) -> dict[str, int]:
        """How many more jobs may begin under each of the limits that a claim of these meets."""
        keys = {
            member.limit_key
            for member in self.limit_member.values()
            if (member.name in tasks if member.kind == "task" else queues is None or member.name in queues)
        }
        for key in keys & self.rate_limit.keys():
            self.sweep(key)
        lanes = {row.lane for row in wanted}
        keys |= {key for row in wanted for key in self.under(row)}
        self.templates = {key: self.template(key, lanes) or key for key in keys}
        limits = {key: self.rate_limit.get(key) or self.fresh(key, self.templates[key]) for key in keys}
        self.bursts = {key: row.burst for key, row in limits.items()}
        self.left = {key: self.tokens(row) + 1e-6 for key, row in limits.items() if row.rate is not None}
        return {key: self.room(row, most) for key, row in limits.items()}

    def template(self, key: str, lanes: Iterable[Lane]) -> str | None:
        """Whose bounds the limit of a key has: those of the first of the limits of its tasks."""
        places = {("task", lane.task) for lane in lanes if lane.limit_key == key}
        return min((self.limit_member[place].limit_key for place in places if place in self.limit_member), default=None)

    def fresh(self, key: str, template: str) -> RateLimit:
        own = self.rate_limit[template]
        bounds = (own.rate, own.per, own.burst, own.concurrency_max)
        return RateLimit(key, *bounds, own.burst, self.clock, template=template)

    def make(self, key: str, template: str) -> None:
        """The limit of a key, with the bounds of its task's; there already, it stays as it is."""
        if key not in self.rate_limit:
            self.rate_limit[key] = self.fresh(key, template)

    def room(self, row: RateLimit, most: int) -> int:
        closed = any(until is not None and until > self.clock for until in (row.paused_until, row.open_until))
        if closed or row.held_at is not None:
            return 0
        running = sum(slot.limit_key == row.key and self.counts(slot) for slot in self.limit_slot.values())
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
            cost = self.cost(row, key)
            room[key] -= 1
            if key in self.left:
                self.left[key] -= cost
                room[key] = min(room[key], int(self.left[key]))
            self.make(key, self.templates[key])
            self.sweep(key)
            limit = self.rate_limit[key]
            self.limit_slot[key, row.job_id] = LimitSlot(key, row.job_id, self.job[row.job_id].attempt + 1, float(cost))
            if limit.rate is not None:
                left = self.tokens(limit) - cost
                left = max(left, 0.0) if left > -1e-5 else left
                self.rate_limit[key] = limit._replace(tokens=left, refilled_at=max(limit.refilled_at, self.clock))

    def affords(self, row: Ready, room: dict[str, int]) -> bool:
        """Whether the tokens that a job costs are there; where not, nobody passes it under its limit."""
        for key in self.under(row):
            if self.left.get(key, self.bursts[key]) < min(self.cost(row, key), self.bursts[key]):
                room[key] = 0
                return False
        return True

    def cost(self, row: Ready, key: str) -> int:
        """What it takes of the limit of its task or key; the one of its queue counts it as one."""
        of_task = self.limit_member.get(("task", row.lane.task))
        own = of_task is not None and key == (row.lane.limit_key or of_task.limit_key)
        return (self.job[row.job_id].cost or 1) if own else 1

    def limit_charge(self, items: Sequence[Charge]) -> list[Charged | DetentError]:
        return [self.charge(item) for item in items]

    def charge(self, item: Charge) -> Charged | DetentError:
        """What an attempt has cost, in all."""
        if (lost := self.lost(item.job_id, item.attempt)) is not None:
            return lost
        job = self.job[item.job_id]
        member = self.limit_member.get(("task", job.task))
        place = ((job.limit_key or member.limit_key) if member is not None else "", job.id)
        slot, row = self.limit_slot.get(place), self.rate_limit.get(place[0])
        if slot is None or slot.attempt != item.attempt:
            return Charged(item.job_id, item.attempt, None)
        self.limit_slot[place] = slot._replace(cost=float(item.cost))
        if row is None or row.rate is None:
            return Charged(item.job_id, item.attempt, None)
        left = min(row.burst, self.tokens(row) + slot.cost - item.cost)
        self.rate_limit[row.key] = row._replace(tokens=left, refilled_at=max(row.refilled_at, self.clock))
        return Charged(item.job_id, item.attempt, left)

    def under(self, row: Ready) -> set[str]:
        of_task, of_queue = (
            self.limit_member.get(place) for place in (("task", row.lane.task), ("queue", row.lane.queue))
        )
        found = set() if of_task is None else {row.lane.limit_key or of_task.limit_key}
        return found if of_queue is None else found | {of_queue.limit_key}

    def throttled(self, job: Job, delay: float) -> None:
        """The other side said no."""
        member = self.limit_member.get(("task", job.task))
        if member is None:
            return
        key = job.limit_key or member.limit_key
        self.make(key, member.limit_key)
        self.sweep(key)
        row = self.rate_limit[key]
        opens = row.throttled >= THROTTLED_MAX
        if opens and row.open_until is None:
            reason = f"{row.throttled + 1} attempts in a row were throttled"
            self.log_of("limit", key, "closed", "open", "open", "system", reason)
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
            if row.open_until is not None:
                self.log_of("limit", key, "open", "closed", "close", "system", "an attempt has succeeded")

    def limit_close(self, after: str, limit: int) -> str | None:
        """A success since the last no closes a breaker, whoever looks."""
        looked = sorted(row.key for row in self.rate_limit.values() if row.open_until is not None and row.key > after)
        for key in looked[:limit]:
            self.sweep(key)
        return looked[limit - 1] if len(looked) >= limit else None

    def limit_prune(self, after: str, limit: int) -> LimitsPruned:
        """Keys that say nothing their template does not go."""
        before = len(self.rate_limit)
        for key in sorted(self.rate_limit):
            self.sweep(key)
        for row in list(self.rate_limit.values()):
            slots = [place for place, slot in self.limit_slot.items() if slot.limit_key == row.key]
            quiet = row.held_at is None and row.open_until is None and row.throttled == 0
            over = row.paused_until is None or row.paused_until <= self.clock
            full = row.rate is None or self.tokens(row) >= row.burst
            idle = full and not any(self.counts(self.limit_slot[place]) for place in slots)
            if row.template is not None and quiet and over and idle:
                del self.rate_limit[row.key]
                for place in slots:
                    del self.limit_slot[place]
        return LimitsPruned(before - len(self.rate_limit), None)

    def free_slots(self, job: Job) -> None:
        """A job that goes takes its slots with it."""
        members = [self.limit_member.get(place) for place in (("task", job.task), ("queue", job.queue))]
        for key in (job.limit_key, *(member.limit_key for member in members if member is not None)):
            self.limit_slot.pop((key or "", job.id), None)

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
