"""The contract's verbs of limits: how many at once, and how many in which time, for all workers together.

The words are those of `contract`, which has these verbs too. A limit is on all jobs of its tasks and queues together; a
job with a `limit_key` of its own, whose task has a limit, is under the limit of that key instead, which has the same
bounds, is made by the first claim that needs it and goes when nothing is left to say of it.

A claim takes no jobs beyond what each limit has room for: as many as may run at once, less those that do; as many
tokens as its bucket holds; none while it is paused or its breaker is open, one at a time while that is half open. What
there is no room for stays ready in its place, and the next claim looks again: no attempt is made and no slot held. What
runs under a limit is read out of the jobs themselves, so whatever ends an attempt makes room by that.

A job may cost more than one token of the limit of its task; the limit of its queue counts it as one. Where its turn
has come and they are not there yet, nothing more begins under that limit: they are saved up for it. One that costs more
than the bucket can hold begins when it is full, and leaves it below zero until it has made up.

`job_abort` with outcome throttled pauses the limit of the job, for everybody, until the delay is over; not that of its
queue. More than five in a row open its breaker for a minute; then one attempt at a time is let through, and one that
succeeds closes it. That it opened and that it closed is on record and logged, once each.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from detent.errors import DetentError, InUse, LeaseLost, NotFound
from detent.model.limit_records import Charge, Charged, LimitFilter, LimitRow, NewLimit
from detent.model.records import Moved
from detent.model.service_records import LimitsPruned
from detent.store.verb import verb

__all__ = ["ALL_LIMITS", "LIMITS_MAX", "LimitVerbs"]

ALL_LIMITS = LimitFilter()
LIMITS_MAX = 1000
"""Limits in one answer, if the caller does not ask for fewer or more."""


class LimitVerbs(Protocol):
    """Limits."""

    @verb("client")
    def limit_put(self, item: NewLimit) -> None:
        """Make a limit, or change the one of that key, for these tasks and queues besides those it has already; a task
        or queue that had another changes over. What is running counts. Pause and breaker stay as they are, and so does
        what is left in the bucket, as far as the new burst goes. Without any bound it only pauses."""
        ...

    @verb("viewer")
    def limit_list(self, chosen: LimitFilter = ALL_LIMITS, after: str = "", limit: int = LIMITS_MAX) -> list[LimitRow]:
        """Return up to `limit` of the chosen limits with keys above `after`, as they stand, by key in the order of the
        database."""
        ...

    @verb("worker", reads=True)
    def limit_refill(self, queues: Sequence[str] | None, tasks: Sequence[str]) -> float | None:
        """Return the seconds in which the quickest bucket on these tasks and queues fills up (None: all queues);
        infinity if none of their limits has a rate, None if they have no limit. Keys have the bounds of their task's
        limit, so they are not looked at."""
        ...

    @verb("worker")
    def limit_close(self, after: str, limit: int) -> str | None:
        """Close the breakers under which an attempt has succeeded, looking at up to `limit` open ones with keys above
        `after`; the key to go on after, or None at the end. A claim does the same for the limits that it uses."""
        ...

    @verb("admin", NotFound)
    def limit_pause(self, key: str, actor: str, reason: str | None = None) -> Moved | DetentError:
        """Let no job begin under a limit until it is reset; what runs goes on. Recorded; paused by hand already, it
        stays as it is. A key that jobs have is a limit, also where none of them was ever claimed. `NotFound`."""
        ...

    @verb("admin", NotFound)
    def limit_reset(self, key: str, actor: str, reason: str | None = None) -> Moved | DetentError:
        """End a pause, whoever made it, close the breaker and fill the bucket. Recorded where there was anything to
        end. `NotFound`."""
        ...

    @verb("admin", InUse, NotFound)
    def limit_remove(self, key: str, actor: str, reason: str | None = None) -> Moved | DetentError:
        """Take a limit away that no code declares any more, with the keys that have its bounds. Recorded. `InUse` while
        jobs wait or run under it; `NotFound`."""
        ...

    @verb("worker", LeaseLost)
    def limit_charge(self, items: Sequence[Charge]) -> list[Charged | DetentError]:
        """Say what attempts have cost the limits of their tasks, in all. What the claim took too much goes back, as far
        as the bucket goes; what it took too little is taken now, also where the bucket is below zero then. Said again,
        the last word counts; the limit of a queue is not meant. `LeaseLost`."""
        ...

    @verb("worker")
    def limit_prune(self, after: str, limit: int) -> LimitsPruned:
        """Delete limits that a template made, under which nothing runs and whose bucket is full, looking at up to
        `limit` limits with keys above `after`."""
        ...
