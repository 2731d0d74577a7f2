"""How much room a claim has under each of the limits that it meets, and what it takes of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

__all__ = ["Left", "Room", "Under"]


@dataclass(slots=True)
class Left:
    """What a limit lets begin: so many jobs, for so many tokens of a bucket that holds `burst`; None is no rate."""

    jobs: int
    tokens: float | None = None
    burst: float = 0.0

    def affords(self, cost: int) -> bool:
        """Whether a job of that cost may begin. The bucket is full at the latest when one does that costs more than it
        can hold."""
        return self.tokens is None or self.tokens >= min(cost, self.burst)

    def take(self, cost: int) -> None:
        """One job less, and what it costs."""
        self.jobs -= 1
        if self.tokens is not None:
            self.tokens -= cost
            self.jobs = min(self.jobs, int(self.tokens))


class Under(NamedTuple):
    """The limits on the jobs of a lane: that of their task or key, and that of their queue."""

    task: str | None
    queue: str | None


class Room:
    """How many jobs more may be claimed under each limit, and which limits a job is under. Looked up when needed.

    What a job costs is taken from the limit of its task; that of its queue counts it as one.
    """

    def __init__(self, members: dict[tuple[str, str], str], look: Callable[[str], Left]) -> None:
        self._members = members
        self._look = look
        self._left: dict[str, Left] = {}
        self.spent: dict[str, list[tuple[int, int]]] = {}
        self.templates: dict[str, str] = {}

    def has_room(self, under: Under) -> bool:
        """Whether each of these limits lets a job begin that costs least."""
        return all(key is None or self._of(key).jobs > 0 for key in under)

    def takes(self, under: Under, cost: int) -> bool:
        """Whether a job whose turn has come may begin. Where only its tokens are not there yet, nobody passes it under
        its limit: they are saved up for it, so it does not wait for ever for others that cost less."""
        if not self.has_room(under):
            return False
        if under.task is not None and not self._of(under.task).affords(cost):
            self._of(under.task).jobs = 0
            return False
        return True

    def under(self, queue: str, task: str, limit_key: str) -> Under:
        """The limits on jobs of that queue and task, with that key."""
        of_task, of_queue = self._members.get(("task", task)), self._members.get(("queue", queue))
        if of_task is not None and limit_key:
            self.templates[limit_key] = min(of_task, self.templates.get(limit_key, of_task))
            of_task = limit_key
        return Under(of_task, None if of_queue == of_task else of_queue)

    def spend(self, under: Under, job_id: int, cost: int) -> None:
        """One less under each of these, which take it."""
        for key, tokens in ((under.task, cost), (under.queue, 1)):
            if key is not None:
                self._of(key).take(tokens)
                self.spent.setdefault(key, []).append((job_id, tokens))

    def _of(self, key: str) -> Left:
        left = self._left.get(key)
        if left is None:
            left = self._left[key] = self._look(key)
        return left
