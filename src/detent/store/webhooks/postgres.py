"""Outgoing webhooks on PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence

from detent.store.postgres.statement import Statement, texts
from detent.store.postgres.verb_base import VerbBase, runs

__all__ = ["PostgresWebhooks"]

_PLACE = "SELECT detent.webhook_place_v1(%s::text)"
_ANNOUNCED = "SELECT detent.announced_put_v1(%s::text[], %s::text[])"
_MOVE = "SELECT detent.webhook_move_v1(%s::text, %s::text, %s::text)"


def webhook_place(target: str) -> Statement[str | None]:
    return Statement(_PLACE, (target,), lambda rows: rows[0][0], writes=False)


def webhook_move(target: str, before: str | None, after: str) -> Statement[bool]:
    return Statement(_MOVE, (target, before, after), lambda rows: bool(rows[0][0]))


def announced_put(announced: Sequence[str], tasks: Sequence[str]) -> Statement[None]:
    return Statement(_ANNOUNCED, (texts(announced), texts(tasks)), lambda rows: None)


class PostgresWebhooks(VerbBase):
    """The verbs of outgoing webhooks."""

    webhook_place = runs(webhook_place)
    webhook_move = runs(webhook_move)
    announced_put = runs(announced_put)
