"""`app.record`: the record of changes, and whether the database agrees with it."""

from __future__ import annotations

from datetime import datetime

from detent.client.engine import Engine
from detent.client.listing import ListPage, check_limit
from detent.client.moves import reason_needed
from detent.client.search import place_of, text_of
from detent.errors import InvalidInput
from detent.model import jsondoor
from detent.model.clock import to_micros
from detent.model.records import JobPlace, RecordPlace, RepairStep, TransitionRow, Violation
from detent.store.jobs.filters import RecordSearch

__all__ = ["Record"]


class Record:
    """The record of every transition."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def search(
        self,
        *,
        actor: str | None = None,
        entity: str | None = None,
        entity_id: object = None,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int = 100,
        after: str | None = None,
    ) -> ListPage[TransitionRow]:
        """List changes that people and programs requested, the newest first, with actor, time and reason.

        `entity` is the kind: job, queue, schedule, limit, batch_run, pipeline_run, operation, alert, or the name of a
        lifecycle of yours. `entity_id` is which one. `.next` of the list is the `after` of the next page. The ordinary
        steps of attempts (claim, start, commit, finish) are not included; `job.history()` has them. `InvalidInput`.
        """
        for field, text in (("actor", actor), ("entity", entity)):
            if text is not None:
                jsondoor.text(text, field=field, bytes_max=self._engine.settings.name_max)
        if entity_id is not None and entity is None:
            raise InvalidInput(
                "entity_id", "an entity_id without its entity", "both, such as entity='job', entity_id=17"
            )
        for field, at in (("since", since), ("until", until)):
            if at is not None:
                to_micros(at, field=field)
        chosen = RecordSearch(actor, entity, None if entity_id is None else str(entity_id), since, until)
        place = place_of(after)
        found = self._engine.store.record_search(
            chosen, None if place is None else RecordPlace(place.created_at, place.id), check_limit(limit)
        )
        return ListPage(found.rows, None if found.next is None else text_of(JobPlace(found.next.at, found.next.n)))

    def verify(self) -> ListPage[Violation]:
        """Check every invariant, and list the violations. An empty list means that the database is healthy."""
        return ListPage(self._engine.store.verify())

    def repair(
        self, *, apply: bool = False, actor: str | None = None, reason: str | None = None
    ) -> ListPage[RepairStep]:
        """List the steps of a repair; with `apply`, carry them out, on record. A reason is required."""
        who, why = reason_needed(actor, reason, self._engine.settings, "a reason: a repair always has one")
        return ListPage(self._engine.store.repair(who, why, apply=apply))
