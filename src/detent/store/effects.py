"""The contract's verbs of effects whose end may go unheard.

The words are those of `contract`, which has these verbs too.

Where a worker dies after it has acted outside of Detent's database, nobody knows whether the effect has happened. So it
says beforehand who will be able to tell: the rules of `contract` for attempts that end without success ask for it.
"""

from __future__ import annotations

from typing import Protocol

from detent.errors import AlreadyCommitted, DetentError, InvalidTransition, LeaseLost, NotFound, NotUnknown
from detent.model.records import EffectBegun, Moved, ToldBy
from detent.model.service_records import IdentityRow
from detent.store.words import Verb

__all__ = ["EFFECTS", "EffectVerbs", "KnowsIdentity"]


class EffectVerbs(Protocol):
    """Effects."""

    def effect_begin(self, job_id: int, attempt: int, told_by: ToldBy) -> EffectBegun | DetentError:
        """Put on record, before the attempt acts where its end may go unheard, that it does, and who can tell
        afterwards whether it has happened: the task's `probe`, or a `marker` in another database. It starts the
        attempt. Only by the holder; `AlreadyCommitted` where the job is committed, by whichever attempt."""
        ...

    def effect_settle(
        self, job_id: int, done: bool, actor: str, reason: str, result: str | None = None
    ) -> Moved | DetentError:
        """What a person found out about a job that is quarantined as unknown; actor and reason are required.

        Done: succeeded, with that result. Not done: pending, due now, with all attempts anew, and no probe is asked
        about what was before. Other states: `InvalidTransition`; quarantined for another reason: `NotUnknown`; no such
        job: `NotFound`. Settled as done already: nothing to do.
        """
        ...

    def identity_list(self) -> list[IdentityRow]:
        """Every identity the database has had, oldest first. The first was made together with its schema."""
        ...

    def identity_renew(self, actor: str, reason: str | None = None) -> IdentityRow:
        """Give the database a new random identity, for the ids that are reserved from now on. Recorded."""
        ...


class KnowsIdentity(Protocol):
    """What a store knows about its database beside the record of jobs."""

    def identity_of(self, number: int) -> str:
        """Return the identity under which the job or run with that id was made. Read from the database once."""
        ...

    def lifecycle_versions(self) -> dict[str, int]:
        """Return the version of each lifecycle that is attached to a table; empty if there is no schema yet."""
        ...


EFFECTS = (
    Verb("identity_list", "viewer"),
    Verb("identity_renew", "admin"),
    Verb("effect_begin", "worker", (LeaseLost, AlreadyCommitted)),
    Verb("effect_settle", "admin", (InvalidTransition, NotFound, NotUnknown)),
)
