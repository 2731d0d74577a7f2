"""The records of limits: concurrency and rate. Frozen, as in `records`."""

from __future__ import annotations

from datetime import datetime

import msgspec
from msgspec import Struct

__all__ = [
    "CHILDREN_LIMIT",
    "Charge",
    "Charged",
    "ChildrenLimit",
    "LimitFilter",
    "LimitRow",
    "NewLimit",
    "limit_of_child_task",
]

CHILDREN_LIMIT = "detent.children:"
"""How the keys of the limits of groups of children begin. `functions/limits.sql` has the same."""


class ChildrenLimit(Struct, frozen=True, gc=False):
    """A group of children that has a limit of its own."""

    parent_id: int
    generation: int
    path: str

    @property
    def key(self) -> str:
        """The key of its limit, which its children have."""
        return f"{CHILDREN_LIMIT}{self.parent_id}:{self.generation}:{self.path}"

    @classmethod
    def of_key(cls, key: str | None) -> ChildrenLimit | None:
        """Return the group whose limit this is; None if it is another limit."""
        if key is None or not key.startswith(CHILDREN_LIMIT):
            return None
        parent_id, _, rest = key.removeprefix(CHILDREN_LIMIT).partition(":")
        generation, _, path = rest.partition(":")
        if not (parent_id.isdecimal() and generation.isdecimal()):
            return None
        return cls(int(parent_id), int(generation), path)


def limit_of_child_task(task: str) -> str:
    """Return the key of the limit without bounds that a task gets if some of its jobs are children under a limit: only
    jobs of a task that has a limit are under that of their own key."""
    return f"detent.child:{task}"


class NewLimit(Struct, frozen=True, kw_only=True):
    """A limit for all jobs of these tasks and queues together. None means no limit of that kind.

    `rate` tokens are added per `per` seconds, up to `burst`. A job takes one, or as many as it costs. Up to
    `concurrency_max` jobs run at once.
    """

    key: str
    rate: float | None = None
    per: float = 1.0
    burst: float = 1.0
    concurrency_max: int | None = None
    tasks: tuple[str, ...] = ()
    queues: tuple[str, ...] = ()

    @property
    def bounds_text(self) -> str:
        """Its bounds as a JSON object, for the record."""
        bounds = {"rate": self.rate, "per": self.per, "burst": self.burst, "concurrency_max": self.concurrency_max}
        return msgspec.json.encode(bounds).decode()


class Charge(Struct, frozen=True, gc=False):
    """The total cost of an attempt for the limit of its task."""

    job_id: int
    attempt: int
    cost: float


class Charged(Struct, frozen=True, gc=False):
    """The tokens left in the bucket after a charge; None if the attempt is under no rate."""

    job_id: int
    attempt: int
    tokens: float | None


class LimitFilter(Struct, frozen=True, kw_only=True):
    """Limits with one of these keys, and the limits of these tasks and queues. All limits if every field is None."""

    keys: tuple[str, ...] | None = None
    tasks: tuple[str, ...] | None = None
    queues: tuple[str, ...] | None = None


class LimitRow(Struct, frozen=True, kw_only=True):
    """A limit with its current state.

    - `tokens`: tokens in its bucket; below zero if jobs have cost more than it had. `running`: jobs that run under it.
    - `paused_until`: no job starts before that time. `held_at`: when a person paused it.
    - `throttled`: throttled attempts in a row. `open_until`: the breaker is open until then, and half open after that
      until an attempt succeeds; None if it is closed.
    - `template`: the limit whose bounds it has, if it is one of many keys.
    """

    key: str
    rate: float | None
    per: float
    burst: float
    concurrency_max: int | None
    tasks: tuple[str, ...]
    queues: tuple[str, ...]
    tokens: float
    running: int
    paused_until: datetime | None
    throttled: int
    open_until: datetime | None
    template: str | None = None
    held_at: datetime | None = None

    def state(self, now: datetime) -> str:
        """Return whether jobs may start: `open`, or `paused`, `breaker`, `half open`, `full` or `spent`."""
        if self.held_at is not None or (self.paused_until is not None and self.paused_until > now):
            return "paused"
        if self.open_until is not None:
            return "breaker" if self.open_until > now else "half open"
        if self.concurrency_max is not None and self.running >= self.concurrency_max:
            return "full"
        return "spent" if self.rate is not None and self.tokens < 1 else "open"

    def until(self, now: datetime) -> datetime | None:
        """Return until when it is paused or its breaker is open; None if it is not, or has no end."""
        if self.held_at is not None:
            return None
        return max((at for at in (self.paused_until, self.open_until) if at is not None and at > now), default=None)
