"""The verbs of operations: one action on all jobs that fit a filter, a few jobs at a time."""

from __future__ import annotations

from typing import Protocol

from detent.errors import DetentError, NotFound
from detent.model.records import Moved
from detent.model.service_records import NewOperation, OperationRow
from detent.store.verb import verb

__all__ = ["OperationVerbs"]


class OperationVerbs(Protocol):
    """Operations."""

    @verb("client")
    def operation_start(self, item: NewOperation) -> OperationRow:
        """Start an operation on all jobs that exist now and fit; recorded. The same id again is the same operation."""
        ...

    @verb("client", NotFound)
    def operation_step(self, operation_id: int, limit: int) -> OperationRow | DetentError:
        """Read the next `limit` jobs and apply the verb of the action to those that fit, in one transaction with the
        progress. An operation that is not running stays as it is. `NotFound`."""
        ...

    @verb("worker", NotFound)
    def operation_skip(self, operation_id: int) -> OperationRow | DetentError:
        """Skip the next job that a step would read, and count it as refused: for a job that makes every step fail. An
        operation that is not running, or has no job left, stays as it is. `NotFound`."""
        ...

    @verb("client", NotFound)
    def operation_cancel(self, operation_id: int, actor: str, reason: str | None = None) -> Moved | DetentError:
        """Stop an operation; what is done stays done. Recorded. One that has ended stays as it is. `NotFound`."""
        ...

    @verb("viewer")
    def operation_get(self, operation_id: int) -> OperationRow | None:
        """Return an operation, None if it does not exist."""
        ...

    @verb("viewer")
    def operation_list(
        self, state: str | None = None, limit: int = 100, before_id: int | None = None
    ) -> list[OperationRow]:
        """Return up to `limit` operations (of that state), newest first, with ids below `before_id`."""
        ...
