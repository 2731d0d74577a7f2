"""The contract's verbs around the jobs: who works, and what is done besides working.

The words are those of `contract`, which has these verbs too.
"""

from __future__ import annotations

from typing import Protocol

from detent.model.service_records import WorkerRow, WorkerSeen
from detent.store.words import Verb

__all__ = ["KEEPING", "KeepingVerbs"]


class KeepingVerbs(Protocol):
    """Workers, and the services that they share."""

    # -- workers -----------------------------------------------------------------------------------------------

    def worker_seen(self, seen: WorkerSeen) -> None:
        """A worker lives, now. The first time it is put on the list, and workers not seen for a day are forgotten.
        Nothing is decided by it: leases decide."""
        ...

    def worker_gone(self, worker_id: int) -> None:
        """A worker has ended and says so; it leaves the list."""
        ...

    def worker_list(self, within: float) -> list[WorkerRow]:
        """The workers seen in the last `within` seconds, by name and id."""
        ...

    # -- services: one at a time -------------------------------------------------------------------------------

    def service_take(self, name: str, holder: int, seconds: float) -> int | None:
        """Do a service for `seconds` from now: the term, or None where somebody else does it.

        The one who has it keeps it, and its term. A lease that ran out may be taken by anybody, which begins a new
        term: terms only grow, so a holder that slept sees that it was somebody else's turn in between.
        """
        ...

    def service_drop(self, name: str, holder: int) -> None:
        """Let others have a service at once. Whoever does not have it changes nothing."""
        ...


KEEPING = (
    Verb("worker_seen", "worker"),
    Verb("worker_gone", "worker"),
    Verb("worker_list", "viewer"),
    Verb("service_take", "worker"),
    Verb("service_drop", "worker"),
)
