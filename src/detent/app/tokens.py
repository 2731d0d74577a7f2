"""`app.tokens`."""

from __future__ import annotations

from datetime import datetime, timedelta

from detent.client.actor import actor_and_reason
from detent.client.engine import Engine
from detent.client.job_verbs import unwrap
from detent.client.list_page import ListPage, check_limit
from detent.declare.task import check_seconds
from detent.errors import InvalidInput
from detent.model import json_codec
from detent.model.ids import new_token
from detent.model.records import Moved
from detent.model.token_records import ROLES, CreatedToken, NewToken, Role, TokenRow, hash_token

__all__ = ["Tokens"]

_BELOW_ALL = 2**63 - 1


class Tokens:
    """The tokens of the HTTP API. Requests that carry one may do what its role allows."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def create(
        self,
        name: str,
        *,
        role: Role = "viewer",
        tenant: str | None = None,
        expires_in: float | None = None,
        actor: str | None = None,
        reason: str | None = None,
    ) -> CreatedToken:
        """Create a token. Its text is returned now and never again: the database has only a hash of it.

        - `name`: the actor of the changes that are made with it.
        - `role`: `viewer` reads, `operator` also acts on jobs, runs and queues, `admin` may do everything.
        - `tenant`: the only tenant that it reaches; default: all.
        - `expires_in`: seconds after which it expires; default: never.

        `NameTaken` if a token of that name has not been revoked, `InvalidInput`.
        """
        settings = self._engine.settings
        if role not in ROLES:
            raise InvalidInput("role", repr(role)[:80], ", ".join(ROLES))
        if tenant is not None:
            json_codec.text(tenant, field="tenant", bytes_max=settings.name_max)
        who, why = actor_and_reason(actor, reason, settings)
        token = new_token()
        item = NewToken(
            id=self._engine.ids.take()[0],
            name=self._checked(name),
            hash=hash_token(token),
            role=role,
            tenant=tenant,
            expires_at=self._expiry(expires_in),
            actor=who,
            reason=why,
        )
        row = unwrap(self._engine.store.token_create(item))
        return CreatedToken(
            token=token, id=row.id, name=row.name, role=row.role, tenant=row.tenant, expires_at=row.expires_at
        )

    def list(self, *, revoked: bool = False, limit: int = 100, after: str | None = None) -> ListPage[TokenRow]:
        """List tokens, the newest first, without their texts; with `revoked` also those that were revoked. `.next` of
        the list is the `after` of the next page. `InvalidInput`."""
        most = check_limit(limit)
        if after is not None and not (after.isascii() and after.isdecimal() and len(after) < 19):
            raise InvalidInput("after", repr(after)[:80], "the `next` of the page before")
        found = self._engine.store.token_list(revoked, _BELOW_ALL if after is None else int(after), most + 1)
        return ListPage(found[:most], str(found[most - 1].id) if len(found) > most else None)

    def revoke(self, name: str, *, actor: str | None = None, reason: str | None = None) -> Moved:
        """Revoke a token for good. Open streams end within ten seconds. A no-op if it is revoked already.
        `NotFound`."""
        who = actor_and_reason(actor, reason, self._engine.settings)
        return unwrap(self._engine.store.token_revoke(self._checked(name), *who))

    def _expiry(self, expires_in: float | None) -> datetime | None:
        if expires_in is None:
            return None
        if check_seconds("expires_in", expires_in) < 1:
            raise InvalidInput("expires_in", f"{expires_in:g} seconds", "1 second or more")
        return self._engine.store.now() + timedelta(seconds=expires_in)

    def _checked(self, name: str) -> str:
        return json_codec.text(name, field="name", bytes_max=self._engine.settings.name_max)
