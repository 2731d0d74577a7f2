"""What a child decides: a pure machine without threads, clock or database.

It is told what happened (claimed, begun, ended, stop) and asked what to do next (how many to claim, which to begin,
what to hand back). The shell around it carries out.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from detent.model.records import Claimed

__all__ = ["Core", "Held", "Want"]

# A reserve of this many seconds of work is claimed ahead, so that slots never wait for the database.
_AHEAD = 0.1
_SMOOTHING = 0.3


@dataclass(slots=True, eq=False)
class Held:
    """A job this child holds: reserved until it has begun."""

    claimed: Claimed
    lease_id: int
    begun_at: float | None = None
    ended: bool = False

    @property
    def job_id(self) -> int:
        """The job."""
        return self.claimed.job_id


@dataclass(frozen=True, slots=True)
class Want:
    """A claim to make: these queues (None is any), at most so many."""

    queues: tuple[str, ...] | None
    limit: int


@dataclass(slots=True)
class Core:
    """Slots, the reserve ahead of them, and what is held.

    `slots` jobs run at once; `queue_slots` caps some queues further. `queues` None means every queue. The reserve grows
    with the rate at which jobs end, up to `reserve_max`: a child of slow jobs holds none that another could begin.
    """

    slots: int
    reserve_max: int
    queues: tuple[str, ...] | None = None
    queue_slots: Mapping[str, int] = field(default_factory=dict)
    stopping: bool = False
    held: dict[int, Held] = field(default_factory=dict)
    running: int = 0
    _reserved: deque[Held] = field(default_factory=deque)
    _running_by_queue: dict[str, int] = field(default_factory=dict)
    _open_by_lease: dict[int, int] = field(default_factory=dict)
    _rate: float = 0.0
    _ended_since: int = 0
    _rate_at: float | None = None

    def wants(self, now: float) -> list[Want]:
        """The claims worth making now; none while stopping, or while there is enough in hand."""
        if self.stopping:
            return []
        self._measure(now)
        room = self.slots + self._reserve() - len(self.held)
        # A claim for a crumb costs as much as one for a loaf: wait until a good part of the reserve is gone.
        if room <= 0 or (self._reserved and room < (self.slots + self._reserve()) // 4):
            return []
        wanted: list[Want] = []
        free = [queue for queue in self.queues or () if queue not in self.queue_slots]
        if self.queues is None or free:
            wanted.append(Want(tuple(free) if self.queues is not None else None, room))
        for queue, most in self.queue_slots.items():
            left = min(most - self._held_of(queue), room)
            if left > 0:
                wanted.append(Want((queue,), left))
        return wanted

    def claimed(self, lease_id: int, jobs: Sequence[Claimed]) -> None:
        """These were claimed under that lease, in this order."""
        for job in jobs:
            held = Held(job, lease_id)
            self.held[job.job_id] = held
            self._reserved.append(held)
        if jobs:
            self._open_by_lease[lease_id] = len(jobs)

    def begin(self, now: float) -> Held | None:
        """The next job to begin, if a slot is free."""
        if self.running >= self.slots or self.stopping:
            return None
        while self._reserved:
            held = self._reserved.popleft()
            if held.ended:
                continue
            held.begun_at = now
            self.running += 1
            queue = held.claimed.queue
            self._running_by_queue[queue] = self._running_by_queue.get(queue, 0) + 1
            return held
        return None

    def end(self, job_id: int) -> int | None:
        """The job is no longer this child's concern; its lease, if that was the last of it."""
        held = self.held.pop(job_id, None)
        if held is None or held.ended:
            return None
        held.ended = True
        if held.begun_at is not None:
            self.running -= 1
            self._running_by_queue[held.claimed.queue] -= 1
        self._ended_since += 1
        left = self._open_by_lease[held.lease_id] - 1
        if left:
            self._open_by_lease[held.lease_id] = left
            return None
        del self._open_by_lease[held.lease_id]
        return held.lease_id

    def stop(self) -> list[Held]:
        """Begin nothing more; the reserve, to be handed back untouched."""
        self.stopping = True
        rest = [held for held in self._reserved if not held.ended]
        self._reserved.clear()
        return rest

    def holding(self) -> Iterable[Held]:
        """Everything in hand, begun or not."""
        return list(self.held.values())

    @property
    def idle(self) -> bool:
        """Whether nothing is in hand."""
        return not self.held

    def _held_of(self, queue: str) -> int:
        return sum(1 for held in self.held.values() if held.claimed.queue == queue)

    def _reserve(self) -> int:
        return min(self.reserve_max, int(self._rate * _AHEAD))

    def _measure(self, now: float) -> None:
        if self._rate_at is None:
            self._rate_at = now
            return
        passed = now - self._rate_at
        if passed >= _AHEAD / 2:
            self._rate += _SMOOTHING * (self._ended_since / passed - self._rate)
            self._rate_at, self._ended_since = now, 0
