"""The verbs of limits: how many jobs run at once, and how many start per time, for all workers together.

A limit applies to all jobs of its tasks and queues together. A job with a `limit_key` whose task has a limit is under
the limit of that key instead. A key has the same bounds as its task's limit; the first claim that needs it creates it,
and retention deletes it when nothing is left to remember.

- **Claims** take no more jobs than every limit has room for: the concurrency that is free, the tokens in the bucket,
  none while the limit is paused or its breaker is open, one at a time while the breaker is half open. Other jobs stay
  ready in their order; no attempt is made and no slot is held. What runs under a limit is read from the jobs
  themselves, so every end of an attempt makes room.
- **Cost**: a job may cost more than one token of its task's limit; its queue's limit counts it as one. If it is a job's
  turn and its tokens are not there yet, no other job starts under that limit until they are. A job that costs more than
  the bucket can hold starts when the bucket is full, and leaves it below zero.
- **Throttling**: `job_abort` with the outcome throttled pauses the job's limit for all workers until the delay is over,
  but not the limit of its queue. More than five in a row open its breaker for a minute. Then one attempt at a time is
  let through, and one that succeeds closes the breaker. Opening and closing is on record and logged, once each.
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
"""Default for the number of limits in one answer."""


class LimitVerbs(Protocol):
    """Limits."""

    @verb("client")
    def limit_put(self, item: NewLimit, actor: str = "client", reason: str | None = None) -> None:
        """Create or change a limit; on record if it is new or its bounds change. Its tasks and queues are added to
        those it has; one that had another limit moves to this one. Running jobs count. A pause and the breaker stay as
        they are, and so do the tokens, up to the new burst. A limit without any bound can only be paused."""
        ...

    @verb("viewer")
    def limit_list(self, chosen: LimitFilter = ALL_LIMITS, after: str = "", limit: int = LIMITS_MAX) -> list[LimitRow]:
        """Return up to `limit` of the chosen limits with keys above `after`, by key in the order of the database."""
        ...

    @verb("worker")
    def limit_refill(self, queues: Sequence[str] | None, tasks: Sequence[str]) -> float | None:
        """Return the seconds in which the quickest bucket on these tasks and queues (None: all queues) fills up;
        infinity if none of their limits has a rate, None if they have no limit. Keys are not read: they have the bounds
        of their task's limit."""
        ...

    @verb("worker")
    def limit_close(self, after: str, limit: int) -> str | None:
        """Close the breakers under which an attempt has succeeded, among up to `limit` open ones with keys above
        `after`. Return the key to continue after, or None at the end. A claim does the same for the limits it uses."""
        ...

    @verb("admin", NotFound)
    def limit_pause(self, key: str, actor: str, reason: str | None = None) -> Moved | DetentError:
        """Let no job start under a limit until it is reset, on record; running jobs continue. Paused by a person
        already: a no-op. A key that a job has is a limit, even before its first claim. Refuses with `NotFound`."""
        ...

    @verb("admin", NotFound)
    def limit_reset(self, key: str, actor: str, reason: str | None = None) -> Moved | DetentError:
        """End a pause, close the breaker and fill the bucket; on record if there was anything to end. Refuses with
        `NotFound`."""
        ...

    @verb("admin", InUse, NotFound)
    def limit_remove(self, key: str, actor: str, reason: str | None = None) -> Moved | DetentError:
        """Remove a limit that no code declares any more, and the keys that have its bounds, on record. Refuses with
        `InUse` while jobs wait or run under it, and with `NotFound`."""
        ...

    @verb("worker", LeaseLost)
    def limit_charge(self, items: Sequence[Charge]) -> list[Charged | DetentError]:
        """Set what attempts have cost the limits of their tasks in total. If the claim took too much, the rest goes
        back into the bucket; if it took too little, the difference is taken, also below zero. The last charge of an
        attempt counts. Limits of queues are not affected. Refuses with `LeaseLost`."""
        ...

    @verb("worker")
    def limit_prune(self, after: str, limit: int) -> LimitsPruned:
        """Delete keys under which nothing runs and whose bucket is full, and limits of groups of children that have
        ended, among up to `limit` limits with keys above `after`. Children in quarantine may be retried: their group
        has not ended."""
        ...
