"""Cancelling the children of cancelled jobs on PostgreSQL, a few at a time."""

from __future__ import annotations

from detent.store.postgres.statement import Statement
from detent.store.postgres.verb_base import VerbBase, runs

__all__ = ["PostgresTreeCancels"]

_STEP = "SELECT detent.tree_cancel_step_v1(%s::integer)"
_SKIP = "SELECT detent.tree_cancel_skip_v1()"
_COUNT = "SELECT detent.tree_cancel_count_v1(%s::bigint, %s::integer)"


def tree_cancel_step(limit: int) -> Statement[int]:
    return Statement(_STEP, (limit,), lambda rows: int(rows[0][0]))


def tree_cancel_skip() -> Statement[int | None]:
    return Statement(_SKIP, (), lambda rows: None if rows[0][0] is None else int(rows[0][0]))


def tree_cancel_count(root_id: int, limit: int = 1000) -> Statement[int]:
    return Statement(_COUNT, (root_id, limit), lambda rows: int(rows[0][0]), writes=False)


class PostgresTreeCancels(VerbBase):
    """The verbs with which a tree is cancelled."""

    tree_cancel_step = runs(tree_cancel_step)
    tree_cancel_skip = runs(tree_cancel_skip)
    tree_cancel_count = runs(tree_cancel_count)
