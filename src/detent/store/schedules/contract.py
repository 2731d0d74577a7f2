"""The verbs of schedules, and of what programs declare in code."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from detent.errors import DetentError, NotFound
from detent.model.records import Enqueued, Moved, NewJob
from detent.model.service_records import DeclarationRow, Declared, DeclaredKind, Fire, NewSchedule, ScheduleRow
from detent.store.verb import verb

__all__ = ["ScheduleVerbs"]


class ScheduleVerbs(Protocol):
    """Schedules and their ticks; declarations of schedules and limits."""

    @verb("client")
    def schedule_put(self, item: NewSchedule, actor: str = "client", reason: str | None = None) -> ScheduleRow:
        """Create or change a schedule, on record. The next tick stays unless cron or zone changed, and so does a pause.
        Putting the same again is a no-op."""
        ...

    @verb("admin", NotFound)
    def schedule_remove(self, name: str, actor: str, reason: str | None = None) -> Moved | DetentError:
        """Remove a schedule, on record; its jobs stay. Refuses with `NotFound`."""
        ...

    @verb("admin", NotFound)
    def schedule_pause(self, name: str, actor: str, reason: str | None = None) -> Moved | DetentError:
        """Stop the ticks of a schedule until it is resumed, on record. Already paused: a no-op. Refuses with
        `NotFound`."""
        ...

    @verb("admin", NotFound)
    def schedule_resume(
        self, name: str, next_at: datetime, actor: str, reason: str | None = None
    ) -> Moved | DetentError:
        """Resume a schedule with its next tick at `next_at`, on record. Ticks during the pause are not made up for.
        Refuses with `NotFound`."""
        ...

    @verb("admin", NotFound)
    def schedule_run(self, name: str, job: NewJob, actor: str, reason: str | None = None) -> Enqueued | DetentError:
        """Enqueue a job of a schedule out of turn, active or paused, in one transaction with its line on record. Its
        ticks stay as they are. `created` is False if an equal job waits under the same key. Refuses with
        `NotFound`."""
        ...

    @verb("viewer")
    def schedule_list(self) -> list[ScheduleRow]:
        """Return every schedule, by name."""
        ...

    @verb("worker")
    def schedule_due(self, limit: int) -> list[ScheduleRow]:
        """Return up to `limit` schedules that are due and not paused, the longest due first."""
        ...

    @verb("worker")
    def schedule_fire(
        self, name: str, expected: datetime, fires: Sequence[Fire], next_at: datetime
    ) -> list[int] | None:
        """Enqueue the jobs of ticks and move a schedule from `expected` to `next_at`, in one transaction.

        Return the ids of the jobs that were created; a job whose key is held by an equal one is not among them. Return
        None, and change nothing, if another caller was first, or the schedule is paused or gone. A tick fires once.
        """
        ...

    # -- declarations ------------------------------------------------------------------------------------------

    @verb("client")
    def declaration_put(self, kind: DeclaredKind, name: str, fingerprint: str, again: bool) -> Declared:
        """Record that a program declares a schedule or a limit.

        - `new`: it is in force, and the caller writes the thing itself in the same transaction.
        - `same`: it was the newest already.
        - `replaced`: another declaration has replaced it, so the program runs older code. With `again` it is in force
          again.

        An empty fingerprint: the thing was removed. The last 50 declarations of a name are kept.
        """
        ...

    @verb("viewer")
    def declaration_list(self) -> list[DeclarationRow]:
        """Return the newest declaration of each thing that was not removed, by kind and name."""
        ...
