"""Who acts, and why: the actor and the reason that go on record with every change."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from detent.declare.settings import Settings
from detent.model import json_codec

__all__ = ["acting_as", "actor_and_reason"]

_ACTING: ContextVar[tuple[str, str | None] | None] = ContextVar("detent_acting", default=None)


@contextmanager
def acting_as(actor: str, reason: str | None, settings: Settings) -> Iterator[None]:
    """Use this actor and reason for every change inside the block that names none itself. `InvalidInput`."""
    token = _ACTING.set(_checked(actor, reason, settings))
    try:
        yield
    finally:
        _ACTING.reset(token)


def actor_and_reason(actor: str | None, reason: str | None, settings: Settings) -> tuple[str, str | None]:
    """Return actor and reason for the record: as given, else those of the enclosing `acting_as` block, else the actor
    of the settings and no reason. `InvalidInput`."""
    block_actor, block_reason = _ACTING.get() or (settings.actor, None)
    return _checked(block_actor if actor is None else actor, block_reason if reason is None else reason, settings)


def _checked(actor: str, reason: str | None, settings: Settings) -> tuple[str, str | None]:
    who = json_codec.text(actor, field="actor", bytes_max=settings.name_max)
    if reason is None:
        return who, None
    return who, json_codec.text(reason, field="reason", bytes_max=settings.reason_max, allow_empty=True)
