"""Outgoing webhooks on SQLite."""

from __future__ import annotations

import json
from collections.abc import Sequence

from detent.store.sqlite.verb_base import VerbBase

__all__ = ["SqliteWebhooks"]

_PLACE = "SELECT place FROM detent_webhook_target WHERE name = ?"
_NEW = "INSERT INTO detent_webhook_target (name, place, moved_at) VALUES (?, ?, ?) ON CONFLICT (name) DO NOTHING"
_MOVE = "UPDATE detent_webhook_target SET place = ?, moved_at = ? WHERE name = ? AND place = ?"

_NOT_ANNOUNCED = """
DELETE FROM detent_announced_task
 WHERE task IN (SELECT value FROM json_each(:tasks)) AND task NOT IN (SELECT value FROM json_each(:announced))
"""
_ANNOUNCED = "INSERT INTO detent_announced_task (task) VALUES (?) ON CONFLICT DO NOTHING"


class SqliteWebhooks(VerbBase):
    """The verbs of outgoing webhooks."""

    def webhook_place(self, target: str) -> str | None:
        found = self._db.rows(_PLACE, (target,))
        return str(found[0][0]) if found else None

    def webhook_move(self, target: str, before: str | None, after: str) -> bool:
        now = self._now()
        if before is None:
            return bool(self._db.change(_NEW, (target, after, now)))
        return bool(self._db.change(_MOVE, (after, now, target, before)))

    def announced_put(self, announced: Sequence[str], tasks: Sequence[str]) -> None:
        self._db.change(_NOT_ANNOUNCED, {"tasks": json.dumps(list(tasks)), "announced": json.dumps(list(announced))})
        self._db.change_many(_ANNOUNCED, [(task,) for task in announced])
