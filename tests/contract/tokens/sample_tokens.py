"""Tokens for tests, and the record of one."""

from __future__ import annotations

from typing import Any

from detent.model.token_records import NewToken, hash_token
from detent.store.contract import Store

__all__ = ["BELOW_ALL", "new_token", "record_of"]

BELOW_ALL = 2**63 - 1


def new_token(store: Store, name: str = "ana", **overrides: Any) -> NewToken:
    """A viewer's token without an end."""
    number = store.ids_reserve(1)
    fields: dict[str, Any] = {"hash": hash_token(f"dtn_{number}"), "role": "viewer", "actor": "bob"} | overrides
    return NewToken(id=number, name=name, **fields)


def record_of(store: Store, name: str = "ana") -> list[tuple[str | None, str, str, str, str | None]]:
    """The changes of the tokens of that name."""
    found = store.transitions("token", name)
    return [(one.from_state, one.to_state, one.trigger, one.actor, one.reason) for one in found]
