"""How much room a claim has under its limits, and how much it takes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

__all__ = ["Left", "Room", "Under"]


@dataclass(slots=True)
class Left:
    """What may start under a limit: a number of jobs, and the tokens of a bucket that holds `burst` (None: no rate)."""

    jobs: int
    tokens: float | None = None
    burst: float = 0.0

    def affords(self, cost: int) -> bool:
        """Return whether a job of that cost may start. If it costs more than the bucket holds, it needs a full one."""
        return self.tokens is None or self.tokens >= min(cost, self.burst)

    def take(self, cost: int) -> None:
        """Take one job and its cost."""
        self.jobs -= 1
        if self.tokens is not None:
            self.tokens -= cost
            self.jobs = min(self.jobs, int(self.tokens))


class Under(NamedTuple):
    """The limits on the jobs of a lane: of their task or key, and of their queue."""

    task: str | None
    queue: str | None


class Room:
    """How many more jobs may be claimed under each limit, and which limits a job is under. Read when needed.

    The cost of a job is taken from the limit of its task; the limit of its queue counts it as one. `look` reads limits;
    it gets their keys with their templates.
    """

    def __init__(
        self, members: dict[tuple[str, str], str], look: Callable[[Mapping[str, str | None]], Mapping[str, Left]]
    ) -> None:
        self._members = members
        self._look = look
        self._left: dict[str, Left] = {}
        self.spent: dict[str, list[tuple[int, int]]] = {}
        self.templates: dict[str, str] = {}

    def read(self, unders: Iterable[Under]) -> None:
        """Read all these limits at once."""
        keys = {key for under in unders for key in under if key is not None} - self._left.keys()
        if keys:
            self._left.update(self._look({key: self.templates.get(key) for key in keys}))

    def has_room(self, under: Under) -> bool:
        """Return whether a job of the least cost may start under each of these limits."""
        task, queue = under
        return (task is None or self._of(task).jobs > 0) and (queue is None or self._of(queue).jobs > 0)

    def takes(self, under: Under, cost: int) -> bool:
        """Return whether the next job of a lane may start. If only its tokens are missing, no other job starts under
        its limit: otherwise jobs that cost less would starve it."""
        if not self.has_room(under):
            return False
        if under.task is not None and not self._of(under.task).affords(cost):
            self._of(under.task).jobs = 0
            return False
        return True

    def under(self, queue: str, task: str, limit_key: str) -> Under:
        """Return the limits on jobs of this queue and task with this key."""
        of_task, of_queue = self._members.get(("task", task)), self._members.get(("queue", queue))
        if of_task is not None and limit_key:
            self.templates[limit_key] = min(of_task, self.templates.get(limit_key, of_task))
            of_task = limit_key
        return Under(of_task, None if of_queue == of_task else of_queue)

    def spend(self, under: Under, job_id: int, cost: int) -> None:
        """Take a job from each of these limits."""
        for key, tokens in ((under.task, cost), (under.queue, 1)):
            if key is not None:
                self._of(key).take(tokens)
                self.spent.setdefault(key, []).append((job_id, tokens))

    def _of(self, key: str) -> Left:
        left = self._left.get(key)
        if left is None:
            left = self._left[key] = self._look({key: self.templates.get(key)})[key]
        return left
