"""The verbs of entities: moves of rows in the user's own tables, and the record of every change."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from detent.errors import DetentError, InvalidInput, InvalidTransition, NotFound
from detent.lifecycle.definition import Lifecycle
from detent.model.follow_records import ChangePlace, JobMark
from detent.model.records import Moved, RecordFeedPage, RecordPage, RecordPlace, TransitionRow
from detent.model.service_records import LinesPruned
from detent.store.jobs.filters import LOOKS_MAX, RecordSearch
from detent.store.verb import verb

__all__ = ["EntityVerbs"]


class EntityVerbs(Protocol):
    """Entities and the record."""

    @verb("client", InvalidTransition, NotFound)
    def entity_move(
        self,
        lifecycle: Lifecycle,
        table: str,
        id_column: str,
        state_column: str,
        entity_id: str,
        trigger: str,
        actor: str,
        reason: str | None = None,
        metadata: str | None = None,
    ) -> Moved | DetentError:
        """Move a row of a user's table by a declared trigger: the log row and the compare-and-set in one transaction.

        If the trigger leads to the row's state from another state, and has no move from it, the row is there already:
        no-op (L3). `InvalidTransition`, `NotFound`, `UnknownState`.
        """
        ...

    @verb("viewer")
    def entity_counts(self, table: str, state_column: str, rows_max: int) -> dict[str, int]:
        """Count the rows of a user's table by state. At most `rows_max` rows are read, whatever the size of the table,
        with the caller's own rights."""
        ...

    @verb("viewer")
    def transitions(self, entity: str, entity_id: str) -> list[TransitionRow]:
        """Return every change of one entity in order. An execution is an entity too: `execution`, `<job>/<attempt>`."""
        ...

    @verb("viewer")
    def record_search(
        self, chosen: RecordSearch, after: RecordPlace | None = None, limit: int = 100, looks: int = LOOKS_MAX
    ) -> RecordPage:
        """Return a page of the explicit changes that fit, of any entity, newest first, after a place. The ordinary
        steps of attempts (claim, start, commit, finish) are not among them: `transitions` has those of one job.

        An index finds an actor, an entity with its id, and times. The search reads about `looks` lines at most. Then
        the page may be short, or empty, and names the place to continue after.
        """
        ...

    @verb("viewer", InvalidInput)
    def record_feed(self, after: str | None = None, limit: int = 100) -> RecordFeedPage:
        """Return the explicit changes that a reader has not seen yet, oldest first. `after` is the `cursor` of a line
        or the `next` of a page; None starts with what is committed from now on, "0" with the oldest line on record.

        A reader that continues after the place it was given misses no line and sees none twice, also if transactions
        commit in another order than they wrote their lines. Lines of one entity are in order. A transaction that stays
        open delays only its own lines: the cursor remembers their numbers. If there are too many of them for a cursor,
        the feed waits until the transaction ends.

        Raises `InvalidInput` for a place that is not in this record.
        """
        ...

    @verb("viewer")
    def job_marks(self, ids: Sequence[int]) -> list[JobMark | None]:
        """Return how far jobs are, in the order of `ids`; None for jobs that do not exist. A job whose mark is the same
        as before has no new event and no new change."""
        ...

    @verb("viewer")
    def job_changes(self, job_id: int, after: ChangePlace, limit: int = 100) -> list[TransitionRow]:
        """Return the transitions of a job and of its executions after a place, in order."""
        ...

    @verb("viewer")
    def entity_changes(self, entity: str, entity_id: str, after_n: int = 0, limit: int = 100) -> list[TransitionRow]:
        """Return the explicit changes of an entity that is not a job after a line, in order: those of a batch run, for
        instance. A move locks its entity, so lines of one entity become visible in the order of their numbers."""
        ...

    @verb("viewer")
    def state_as_of(self, entity: str, entity_id: str, at: datetime) -> str | None:
        """Return the state at a past time, from the record; None before the entity began."""
        ...

    @verb("worker")
    def log_prune(self, before: datetime, after: int, limit: int, actor: str) -> LinesPruned:
        """Delete lines of the log that belong to no job and are older than `before`, reading up to `limit` lines above
        `after`. The newest such line of each entity stays, since it tells the state; lines of a batch or pipeline run
        are deleted after the run. Older horizons than `before`, except the newest, are deleted too. The horizon is
        recorded."""
        ...
