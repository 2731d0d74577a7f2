"""`app.record` and `app.identities`: the record of changes, and the identity of the database."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct

from detent.client.actor import actor_and_reason
from detent.client.engine import Engine
from detent.client.job_verbs import reason_needed
from detent.client.list_page import ListPage, check_limit, place_of, text_of
from detent.errors import InvalidInput, WrongPlace
from detent.model import json_codec
from detent.model.clock import to_micros
from detent.model.records import JobPlace, RecordPlace, RepairStep, TransitionRow, Violation
from detent.model.service_records import IdentityRow
from detent.store.invariants import meanings
from detent.store.jobs.filters import RecordSearch

__all__ = ["Identities", "Invariant", "Record"]

_GONE_AFTER = 60.0


class Invariant(Struct, frozen=True):
    """A condition that must hold, and what it says."""

    name: str
    says: str


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
                json_codec.text(text, field=field, bytes_max=self._engine.settings.name_max)
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

    def invariants(self) -> ListPage[Invariant]:
        """List the invariants that `verify` checks, by name, with what they say."""
        return ListPage(Invariant(name, said) for name, said in sorted(meanings().items()))

    def repair(
        self, *, apply: bool = False, actor: str | None = None, reason: str | None = None
    ) -> ListPage[RepairStep]:
        """List what a repair would do; with `apply`, do it, on record. A reason is required."""
        who, why = reason_needed(actor, reason, self._engine.settings, "a reason: every repair needs one")
        return ListPage(self._engine.store.repair(who, why, apply=apply))


class Identities:
    """The identities of the database. The current one is part of the effect keys of new jobs."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def list(self) -> ListPage[IdentityRow]:
        """List every identity that this database has had, the oldest first."""
        return ListPage(self._engine.store.identity_list())

    def current(self) -> str:
        """Return the identity of this database: a random text."""
        return self._engine.store.identity_list()[-1].identity

    def renew(self, *, actor: str | None = None, reason: str | None = None) -> str:
        """Give this database a new identity, after it was restored from a backup or copied. Return the identity.

        Existing jobs keep their effect keys, so that a repeated effect is recognised. New jobs get keys that no other
        copy of the database uses. Workers read the identities when they start, so this is refused with `WrongPlace` if
        a worker was seen in the last minute.
        """
        who, why = actor_and_reason(actor, reason, self._engine.settings)
        store = self._engine.store
        if alive := store.worker_list(_GONE_AFTER):
            names = ", ".join(sorted({worker.name for worker in alive})[:5])
            found = f"{len(alive)} workers were seen in the last minute ({names})"
            raise WrongPlace("identities.renew()", found, "stop the workers first, and try again after a minute")
        return store.identity_renew(who, why).identity
