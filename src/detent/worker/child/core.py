"""The decisions of a child: which jobs to claim, to begin and to hand back.

The core is pure: no threads, no clock, no database. It is told what happened (claimed, begun, ended, stop) and asked
what to do next. A job is identified by its `HeldJob`, never by its id: after a lost lease the same job may be claimed
again while its earlier attempt is still running here.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from msgspec import Struct

from detent.model.records import Claimed

__all__ = ["ClaimRequest", "Core", "HeldJob"]

_RESERVE_SECONDS = 0.1
"""Seconds of work that are claimed in advance, so that slots never wait for the database."""
_CLAIM_MAX = 2000
"""Jobs of one claim. On SQLite all other writers wait while a claim is written."""
_MEASURE_EVERY = 0.02
"""Seconds between two measurements of the rate at which jobs end."""
_MEASURE_EARLY = 16
"""Measure earlier if at least this many jobs, and as many as may be held, have ended since the last measurement."""
_GROWTH_MAX = 8
"""The reserve is at most this many times the number of jobs that ended since the last measurement."""
_TIME_MIN = 1e-6
_SMOOTHING = 0.15


class HeldJob(Struct, eq=False):
    """A job that this child holds. It is reserved until it has begun."""

    claimed: Claimed
    lease_id: int
    begun_at: float | None = None
    ended: bool = False
    claimed_at: float = 0.0
    called_at: float | None = None

    @property
    def job_id(self) -> int:
        """The id of the job."""
        return self.claimed.job_id

    @property
    def begun_after(self) -> float | None:
        """Seconds from the claim to the call of the function; None if it was not called."""
        return None if self.called_at is None else self.called_at - self.claimed_at


@dataclass(frozen=True, slots=True)
class ClaimRequest:
    """A claim to make: at most `limit` jobs from these queues (None means every queue)."""

    queues: tuple[str, ...] | None
    limit: int


@dataclass(slots=True)
class Core:
    """Slots, the reserve of jobs that wait for a slot, and all jobs held.

    At most `slots` jobs run at once; `queue_slots` limits some queues further. `queues` None means every queue. The
    reserve grows with the rate at which jobs end, up to `reserve_max`: a child with slow jobs holds none that another
    worker could begin.
    """

    slots: int
    reserve_max: int
    queues: tuple[str, ...] | None = None
    queue_slots: Mapping[str, int] = field(default_factory=dict)
    stopping: bool = False
    held: set[HeldJob] = field(default_factory=set)
    running: int = 0
    _reserved: deque[HeldJob] = field(default_factory=deque)
    _held_by_queue: Counter[str] = field(default_factory=Counter)
    _open_by_lease: Counter[int] = field(default_factory=Counter)
    _turn: int = 0
    _rate: float = 0.0
    _ended_since: int = 0
    _rate_at: float | None = None

    def next_claims(self, now: float) -> list[ClaimRequest]:
        """Return the claims worth trying now, in turn until one of them gives jobs.

        Each may use up all the room there is, so ask again after one that gave something. The list is empty while
        stopping, and while enough jobs are held. The queues take turns at being first.
        """
        if self.stopping:
            return []
        self._measure(now)
        if not self.needs_claim:
            return []
        room = min(_CLAIM_MAX, self.slots + self._reserve() - len(self.held))
        requests: list[ClaimRequest] = []
        unlimited = tuple(queue for queue in self.queues or () if queue not in self.queue_slots)
        if self.queues is None or unlimited:
            requests.append(ClaimRequest(None if self.queues is None else unlimited, room))
        for queue, slots in self.queue_slots.items():
            if (left := min(slots - self._held_by_queue[queue], room)) > 0:
                requests.append(ClaimRequest((queue,), left))
        self._turn += 1
        first = self._turn % len(requests) if requests else 0
        return requests[first:] + requests[:first]

    def add_claimed(self, lease_id: int, jobs: Sequence[Claimed], at: float = 0.0) -> None:
        """Add jobs that were claimed under this lease at time `at`, in this order."""
        taken = [HeldJob(job, lease_id, claimed_at=at) for job in jobs]
        self.held.update(taken)
        self._reserved.extend(taken)
        if self.queue_slots:
            self._held_by_queue.update(job.queue for job in jobs)
        self._open_by_lease[lease_id] += len(taken)

    def begin(self, now: float, limit: int) -> list[HeldJob]:
        """Take the next jobs to begin: as many as slots are free, and at most `limit`."""
        begun: list[HeldJob] = []
        room = 0 if self.stopping else min(limit, self.slots - self.running)
        while self._reserved and len(begun) < room:
            held = self._reserved.popleft()
            if not held.ended:
                held.begun_at = now
                begun.append(held)
        self.running += len(begun)
        return begun

    def end(self, ended: Iterable[HeldJob]) -> list[int]:
        """Drop these jobs; return the leases of which they were the last. Ending a job twice is a no-op."""
        held_now, open_by_lease = self.held, self._open_by_lease
        leases_done: list[int] = []
        for held in ended:
            if held.ended:
                continue
            held.ended = True
            held_now.remove(held)
            if self.queue_slots:
                self._held_by_queue[held.claimed.queue] -= 1
            if held.begun_at is not None:
                self.running -= 1
                self._ended_since += 1
            lease_id = held.lease_id
            still_open = open_by_lease[lease_id] - 1
            if still_open:
                open_by_lease[lease_id] = still_open
            else:
                del open_by_lease[lease_id]
                leases_done.append(lease_id)
        return leases_done

    @property
    def first(self) -> HeldJob | None:
        """The next job to begin; None while stopping, or if no slot is free."""
        if self.running >= self.slots or self.stopping:
            return None
        while self._reserved and self._reserved[0].ended:
            self._reserved.popleft()
        return self._reserved[0] if self._reserved else None

    @property
    def needs_claim(self) -> bool:
        """Whether a claim is worth its cost: a claim of few jobs costs as much as one of many, so wait until a good
        part of the reserve is used up."""
        most = self.slots + self._reserve()
        room = most - len(self.held)
        return room > 0 and not (self._reserved and room < most // 4)

    def take_surplus(self) -> list[HeldJob]:
        """Take out the jobs to hand back: they were reserved while jobs were quick, and other workers could run them
        sooner now."""
        kept = self.slots + self._reserve()
        if len(self._reserved) <= 2 * kept:
            return []
        rest = [held for held in list(self._reserved)[kept:] if not held.ended]
        self._reserved = deque(list(self._reserved)[:kept])
        return rest

    def stop(self) -> list[HeldJob]:
        """Begin no more jobs from now on; return the reserved ones, to be handed back."""
        self.stopping = True
        rest = [held for held in self._reserved if not held.ended]
        self._reserved.clear()
        return rest

    @property
    def is_empty(self) -> bool:
        """Whether no job is held."""
        return not self.held

    def _reserve(self) -> int:
        return min(self.reserve_max, int(self._rate * _RESERVE_SECONDS))

    def _measure(self, now: float) -> None:
        if self._rate_at is None:
            self._rate_at = now
            return
        passed = now - self._rate_at
        if passed >= _MEASURE_EVERY or self._ended_since >= max(_MEASURE_EARLY, self.slots + self._reserve()):
            # A rate over a very short time may be chance, so the reserve grows in steps.
            rate = min(self._ended_since / max(passed, _TIME_MIN), _GROWTH_MAX * self._ended_since / _RESERVE_SECONDS)
            # Up at once: with too small a reserve the child waits for every claim. Down slowly: the database may just
            # have paused.
            self._rate = rate if rate > self._rate else self._rate + _SMOOTHING * (rate - self._rate)
            self._rate_at, self._ended_since = now, 0
