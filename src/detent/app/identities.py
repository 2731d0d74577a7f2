"""`app.identities`: what tells this database from every other one."""

from __future__ import annotations

from detent.client.acting import actor_and_reason
from detent.client.engine import Engine
from detent.client.listing import ListPage
from detent.errors import WrongPlace
from detent.model.service_records import IdentityRow

__all__ = ["Identities"]

_GONE_AFTER = 60.0


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
