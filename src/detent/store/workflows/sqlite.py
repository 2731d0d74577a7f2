"""All the verbs of workflows on SQLite."""

from __future__ import annotations

from detent.store.workflows.sqlite_cancels import SqliteTreeCancels
from detent.store.workflows.sqlite_children import SqliteChildren
from detent.store.workflows.sqlite_copies import SqliteCopies
from detent.store.workflows.sqlite_lists import SqliteWorkflowLists
from detent.store.workflows.sqlite_signals import SqliteSignals
from detent.store.workflows.sqlite_undo import SqliteUndo

__all__ = ["SqliteWorkflows"]


class SqliteWorkflows(SqliteSignals, SqliteChildren, SqliteUndo, SqliteCopies, SqliteTreeCancels, SqliteWorkflowLists):
    """The verbs of workflows."""
