"""One attempt, read top to bottom: decode, call, and how it ends."""

from __future__ import annotations

import asyncio
from typing import Any

from detent.declare.settings import Settings
from detent.declare.task import Task
from detent.errors import InvalidArguments, LeaseLost
from detent.model.ids import Ids
from detent.model.records import Abort, Claimed, Finish
from detent.model.sanitize import error_text
from detent.store.contract import Store
from detent.worker.context import AttemptContext

__all__ = ["run_attempt"]


def run_attempt(
    claimed: Claimed, task: Task[..., Any], store: Store, ids: Ids, settings: Settings
) -> Finish | Abort | None:
    """Run the function and say how the attempt ends; None where the lease was lost and there is nothing left to say.

    An error after the commit does not undo it: the job has succeeded, and the error becomes a line in its record.
    """
    context = AttemptContext(claimed, task, store, ids, settings)
    try:
        arguments = task.decode(claimed.payload)
    except InvalidArguments as error:
        return _abort(claimed, error_text(error), fatal=True)
    try:
        value = task.function(context, **arguments)
        if task.is_async:
            value = asyncio.run(value)
        return Finish(claimed.job_id, claimed.attempt, task.encode_result(value))
    except LeaseLost:
        return None
    except Exception as error:
        if context.committed:
            context.event(f"error after the commit: {error_text(error)}", level="error")
            return Finish(claimed.job_id, claimed.attempt)
        policy = task.options.retry
        counted = max(1, claimed.attempt - claimed.spared)
        return _abort(
            claimed, error_text(error), fatal=not policy.covers(error), delay=policy.delay(counted, ids.random())
        )


def _abort(claimed: Claimed, error: str, *, fatal: bool, delay: float = 0.0) -> Abort:
    return Abort(job_id=claimed.job_id, attempt=claimed.attempt, outcome="error", error=error, fatal=fatal, delay=delay)
