"""The contract's verbs around the jobs: who works, and what is done besides working.

The words are those of `contract`, which has these verbs too.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from detent.errors import DetentError, NotFound
from detent.model.records import Enqueued, Moved, NewJob
from detent.model.service_records import (
    Agenda,
    DeclarationRow,
    Declared,
    DeclaredKind,
    Fire,
    NewSchedule,
    ScheduleRow,
    WorkerRow,
    WorkerSeen,
)
from detent.store.verb import verb

__all__ = ["KeepingVerbs"]


class KeepingVerbs(Protocol):
    """Workers, the services that they share, schedules, and what is done to many jobs at once."""

    # -- workers -----------------------------------------------------------------------------------------------

    @verb("worker")
    def worker_seen(self, seen: WorkerSeen) -> Agenda:
        """A worker lives, now, and hears what there is to do besides jobs. The first time it is put on the list, and
        workers not seen for a day are forgotten. Nothing is decided by it: leases decide."""
        ...

    @verb("worker")
    def worker_gone(self, worker_id: int) -> None:
        """A worker has ended and says so; it leaves the list."""
        ...

    @verb("viewer")
    def worker_list(self, within: float) -> list[WorkerRow]:
        """The workers seen in the last `within` seconds, by name and id."""
        ...

    # -- services: one at a time -------------------------------------------------------------------------------

    @verb("worker")
    def service_take(self, name: str, holder: int, seconds: float) -> int | None:
        """Do a service for `seconds` from now: the term, or None where somebody else does it.

        The one who has it keeps it, and its term. A lease that ran out may be taken by anybody, which begins a new
        term: terms only grow, so a holder that slept sees that it was somebody else's turn in between.
        """
        ...

    @verb("worker")
    def service_drop(self, name: str, holder: int) -> None:
        """Let others have a service at once. Whoever does not have it changes nothing."""
        ...

    # -- what is declared in code ------------------------------------------------------------------------------

    @verb("client")
    def declaration_put(self, kind: DeclaredKind, name: str, fingerprint: str, again: bool) -> Declared:
        """A program declares a schedule or a limit. `new`: it counts from now on, and the caller writes what it says in
        the same transaction. `same`: it is the newest already. `replaced`: another declaration has replaced it, so the
        program runs older code; with `again` it counts again. An empty fingerprint: the thing was removed. The last 50
        declarations of a name are kept."""
        ...

    @verb("viewer")
    def declaration_list(self) -> list[DeclarationRow]:
        """The newest declaration of each thing that was not removed, by kind and name."""
        ...

    # -- schedules ---------------------------------------------------------------------------------------------

    @verb("client")
    def schedule_put(self, item: NewSchedule) -> ScheduleRow:
        """Make a schedule, or change the one of that name; recorded. Its next tick stays as it is unless cron or zone
        changed, and so does a pause. The same again changes nothing."""
        ...

    @verb("admin", NotFound)
    def schedule_remove(self, name: str, actor: str, reason: str | None = None) -> Moved | DetentError:
        """No tick of it comes any more; jobs that it made stay. Recorded. `NotFound`."""
        ...

    @verb("admin", NotFound)
    def schedule_pause(self, name: str, actor: str, reason: str | None = None) -> Moved | DetentError:
        """No tick comes until it is resumed. Pausing a paused one changes nothing. Recorded. `NotFound`."""
        ...

    @verb("admin", NotFound)
    def schedule_resume(
        self, name: str, next_at: datetime, actor: str, reason: str | None = None
    ) -> Moved | DetentError:
        """Ticks come again, the first at `next_at`: those of the pause are not made up for. Recorded. `NotFound`."""
        ...

    @verb("admin", NotFound)
    def schedule_run(self, name: str, job: NewJob, actor: str, reason: str | None = None) -> Enqueued | DetentError:
        """Enqueue a job of a schedule out of turn, active or paused, in one transaction with the line that says so. Its
        ticks stay as they are. `created` is False if an equal job waits under the same key. `NotFound`."""
        ...

    @verb("viewer")
    def schedule_list(self) -> list[ScheduleRow]:
        """Every schedule, by name."""
        ...

    @verb("worker", reads=True)
    def schedule_due(self, limit: int) -> list[ScheduleRow]:
        """Up to `limit` schedules whose tick has come and that are not paused, the longest due first."""
        ...

    @verb("worker")
    def schedule_fire(
        self, name: str, expected: datetime, fires: Sequence[Fire], next_at: datetime
    ) -> list[int] | None:
        """Deal with the ticks of a schedule that stands at `expected`: enqueue their jobs and move it to `next_at`, in
        one transaction. The ids of the jobs that were made: not where an equal one waits already under the same key.
        None where somebody else was first, or it is paused or gone: then nothing was changed. A tick that was ever
        dealt with is never dealt with again."""
        ...
