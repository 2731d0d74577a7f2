"""What a child decides: a pure machine without threads, clock or database.

It is told what happened (claimed, begun, ended, stop) and asked what to do next (how many to claim, which to begin,
what to hand back). The shell around it carries out. A job is told apart by its `Held`, never by its id: after a lost
lease the same job may be claimed again while its earlier attempt is still in hand.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from detent.model.records import Claimed

__all__ = ["Core", "Held", "Want"]

# A reserve of this many seconds of work is claimed ahead, so that slots never wait for the database.
_AHEAD = 0.1
_CLAIM_MAX = 2000
"""Jobs of one claim: on SQLite everybody else waits while it is written."""
_LOOK = 0.02
_ENOUGH = 16
"""As many as this, and all that may be in hand, ended in no time: that is worth a look before the time for it."""
_STEP = 8
"""The reserve is so many times what has ended since the last look, at most."""
_INSTANT = 1e-6
_SMOOTHING = 0.15


@dataclass(slots=True, eq=False)
class Held:
    """A job this child holds: reserved until it has begun."""

    claimed: Claimed
    lease_id: int
    begun_at: float | None = None
    ended: bool = False
    claimed_at: float = 0.0
    called_at: float | None = None

    @property
    def job_id(self) -> int:
        """The job."""
        return self.claimed.job_id

    @property
    def begun_after(self) -> float | None:
        """Seconds from the claim to the call of the function; None if it was not called."""
        return None if self.called_at is None else self.called_at - self.claimed_at


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
    held: set[Held] = field(default_factory=set)
    running: int = 0
    _reserved: deque[Held] = field(default_factory=deque)
    _held_by_queue: Counter[str] = field(default_factory=Counter)
    _open_by_lease: Counter[int] = field(default_factory=Counter)
    _turn: int = 0
    _rate: float = 0.0
    _ended_since: int = 0
    _rate_at: float | None = None

    def wants(self, now: float) -> list[Want]:
        """The claims worth trying now, one after another until one gives something; then ask again, for each may take
        all the room there is. None while stopping, or while there is enough in hand. Queues take turns to be first."""
        if self.stopping:
            return []
        self._measure(now)
        if not self.is_hungry:
            return []
        room = min(_CLAIM_MAX, self.slots + self._reserve() - len(self.held))
        wanted: list[Want] = []
        uncapped = tuple(queue for queue in self.queues or () if queue not in self.queue_slots)
        if self.queues is None or uncapped:
            wanted.append(Want(None if self.queues is None else uncapped, room))
        for queue, cap in self.queue_slots.items():
            if (left := min(cap - self._held_by_queue[queue], room)) > 0:
                wanted.append(Want((queue,), left))
        self._turn += 1
        first = self._turn % len(wanted) if wanted else 0
        return wanted[first:] + wanted[:first]

    def claimed(self, lease_id: int, jobs: Sequence[Claimed], at: float = 0.0) -> None:
        """These were claimed under that lease, in this order, at that time."""
        taken = [Held(job, lease_id, claimed_at=at) for job in jobs]
        self.held.update(taken)
        self._reserved.extend(taken)
        if self.queue_slots:
            self._held_by_queue.update(job.queue for job in jobs)
        self._open_by_lease[lease_id] += len(taken)

    def begin(self, now: float, most: int) -> list[Held]:
        """The next jobs to begin, as many as slots are free, and at most so many."""
        begun: list[Held] = []
        room = 0 if self.stopping else min(most, self.slots - self.running)
        while self._reserved and len(begun) < room:
            held = self._reserved.popleft()
            if not held.ended:
                held.begun_at = now
                begun.append(held)
        self.running += len(begun)
        return begun

    def end(self, ended: Iterable[Held]) -> list[int]:
        """These jobs are no longer this child's concern; the leases of which they were the last. Twice is once."""
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
    def first(self) -> Held | None:
        """The next job to begin, if a slot is free for it and nobody wants us to stop."""
        if self.running >= self.slots or self.stopping:
            return None
        while self._reserved and self._reserved[0].ended:
            self._reserved.popleft()
        return self._reserved[0] if self._reserved else None

    @property
    def is_hungry(self) -> bool:
        """Whether it is worth while to ask what to claim. A claim for a crumb costs as much as one for a loaf: wait
        until a good part of the reserve is gone."""
        most = self.slots + self._reserve()
        room = most - len(self.held)
        return room > 0 and not (self._reserved and room < most // 4)

    def surplus(self) -> list[Held]:
        """What was claimed ahead when jobs were quick, and now only keeps others from it: to be handed back."""
        kept = self.slots + self._reserve()
        if len(self._reserved) <= 2 * kept:
            return []
        rest = [held for held in list(self._reserved)[kept:] if not held.ended]
        self._reserved = deque(list(self._reserved)[:kept])
        return rest

    def stop(self) -> list[Held]:
        """Begin nothing more; the reserve, to be handed back untouched."""
        self.stopping = True
        rest = [held for held in self._reserved if not held.ended]
        self._reserved.clear()
        return rest

    def holding(self) -> list[Held]:
        """Everything in hand, begun or not."""
        return list(self.held)

    @property
    def idle(self) -> bool:
        """Whether nothing is in hand."""
        return not self.held

    def _reserve(self) -> int:
        return min(self.reserve_max, int(self._rate * _AHEAD))

    def _measure(self, now: float) -> None:
        if self._rate_at is None:
            self._rate_at = now
            return
        passed = now - self._rate_at
        if passed >= _LOOK or self._ended_since >= max(_ENOUGH, self.slots + self._reserve()):
            # What was measured in less time than that may have been chance: the reserve grows by steps.
            rate = min(self._ended_since / max(passed, _INSTANT), _STEP * self._ended_since / _AHEAD)
            # Up at once: with a reserve too small for its jobs a child waits for every claim. Down slowly: it may be a
            # pause of the database's.
            self._rate = rate if rate > self._rate else self._rate + _SMOOTHING * (rate - self._rate)
            self._rate_at, self._ended_since = now, 0
