"""All the verbs of workflows on PostgreSQL."""

from __future__ import annotations

from detent.store.workflows.postgres_cancels import PostgresTreeCancels
from detent.store.workflows.postgres_children import PostgresChildren
from detent.store.workflows.postgres_copies import PostgresCopies
from detent.store.workflows.postgres_lists import PostgresWorkflowLists
from detent.store.workflows.postgres_signals import PostgresSignals
from detent.store.workflows.postgres_steps import PostgresSteps
from detent.store.workflows.postgres_undo import PostgresUndo
from detent.store.workflows.postgres_waits import PostgresWaits

__all__ = ["PostgresWorkflows"]


class PostgresWorkflows(
    PostgresSteps,
    PostgresWaits,
    PostgresSignals,
    PostgresChildren,
    PostgresUndo,
    PostgresCopies,
    PostgresTreeCancels,
    PostgresWorkflowLists,
):
    """The verbs of workflows."""
