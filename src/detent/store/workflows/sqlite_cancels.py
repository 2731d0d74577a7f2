"""Cancelling the children of cancelled jobs on SQLite, a few at a time."""

from __future__ import annotations

from typing import NamedTuple

from detent.store.jobs.sqlite_cancels import CancelRequest
from detent.store.jobs.sqlite_moves import SqliteMoves

__all__ = ["SqliteTreeCancels"]

_NEXT = """
SELECT n, job_id, after_id, until_id, actor, reason, undo, root_id FROM detent_tree_cancel ORDER BY n LIMIT 1
"""
_CHILDREN = """
SELECT id, state, committed_at IS NOT NULL FROM detent_job
 WHERE parent_id = ? AND id > ? AND id <= ? ORDER BY id LIMIT ?
"""
_GOES_ON = "UPDATE detent_tree_cancel SET after_id = ? WHERE n = ?"
_IS_DONE = "DELETE FROM detent_tree_cancel WHERE n = ?"
_LEFT = "SELECT count(*) FROM (SELECT 1 FROM detent_tree_cancel WHERE root_id = ? LIMIT ?)"
_IS_CANCELLED_WITH = """
SELECT coalesce((SELECT ?1 < g.first_id + g.total FROM detent_child_group g
                  WHERE g.parent_id = ?2 AND g.first_id <= ?1 ORDER BY g.first_id DESC LIMIT 1), 0)
    OR EXISTS (SELECT 1 FROM detent_graph_node WHERE job_id = ?1)
"""


class _Node(NamedTuple):
    """A cancelled job, and which of its children have yet to be looked at."""

    n: int
    job_id: int
    after_id: int
    until_id: int
    actor: str
    reason: str
    undo: int
    root_id: int

    @property
    def asked(self) -> CancelRequest:
        return CancelRequest(self.actor, self.reason, bool(self.undo), self.root_id)


class SqliteTreeCancels(SqliteMoves):
    """`tree_cancel_step`, `tree_cancel_skip` and `tree_cancel_count`."""

    def tree_cancel_step(self, limit: int) -> int:
        """differs: on PostgreSQL, the children of those that a call has cancelled are left to the next one."""
        now, looked = self._now(), 0
        while looked < limit and (rows := self._db.rows(_NEXT)):
            node = _Node._make(rows[0])
            children = self._db.rows(_CHILDREN, (node.job_id, node.after_id, node.until_id, limit - looked))
            if len(children) < limit - looked:
                self._db.change(_IS_DONE, (node.n,))
            else:
                self._db.change(_GOES_ON, (children[-1][0], node.n))
            looked += max(1, len(children))
            for child_id, state, committed in children:
                self._cancel_child(child_id, state, bool(committed), node, now)
        return looked

    def _cancel_child(self, child_id: int, state: str, committed: bool, node: _Node, now: int) -> None:
        """Cancel a child. One that has ended stays as it is, and its own children are cancelled: also if it is
        cancelled, since a child that was given up (discard) has left them alone. A detached one belongs to no group,
        and lives on."""
        ((goes,),) = self._db.rows(_IS_CANCELLED_WITH, (child_id, node.job_id))
        if not goes:
            return
        if state in ("pending", "running") and not committed:
            self._cancel(child_id, node.asked, now)
        else:
            self._cancel_children(child_id, node.asked)

    def tree_cancel_skip(self) -> int | None:
        for row in self._db.rows(_NEXT):
            node = _Node._make(row)
            for child_id, _, _ in self._db.rows(_CHILDREN, (node.job_id, node.after_id, node.until_id, 1)):
                self._db.change(_GOES_ON, (child_id, node.n))
                return int(child_id)
        return None

    def tree_cancel_count(self, root_id: int, limit: int = 1000) -> int:
        ((left,),) = self._db.rows(_LEFT, (root_id, limit))
        return int(left)
