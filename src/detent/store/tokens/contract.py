"""The verbs of tokens, which requests to the HTTP API carry."""

from __future__ import annotations

from typing import Protocol

from detent.errors import DetentError, NameTaken, NotFound
from detent.model.records import Moved
from detent.model.token_records import NewToken, TokenRow
from detent.store.verb import verb

__all__ = ["TokenVerbs"]


class TokenVerbs(Protocol):
    """Tokens. A token is usable until it is revoked or expires."""

    @verb("admin", NameTaken)
    def token_create(self, item: NewToken) -> TokenRow | DetentError:
        """Create a token, on record. The same id again is the same token. Refuses with `NameTaken` if a token of that
        name has not been revoked."""
        ...

    @verb("admin", NotFound)
    def token_revoke(self, name: str, actor: str, reason: str | None = None) -> Moved | DetentError:
        """Revoke the token of that name for good, on record. Already revoked: a no-op. Refuses with `NotFound`."""
        ...

    @verb("client", reads=True)
    def token_list(self, revoked: bool, before: int, limit: int) -> list[TokenRow]:
        """Return up to `limit` tokens with ids below `before`, the highest id first: those that are not revoked, or
        with `revoked` all."""
        ...

    @verb("viewer")
    def token_find(self, hash: str) -> TokenRow | None:
        """Return the token with that hash, also if it has expired or is revoked; None if there is none."""
        ...

    @verb("client")
    def token_used(self, token_id: int) -> bool:
        """Note that a token is used, at most once a minute. Return whether it was noted."""
        ...
