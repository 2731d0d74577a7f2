"""Why a pipeline run is not retried, in the same words on every database."""

from __future__ import annotations

from detent.errors import DetentError, InvalidTransition, NotFound, NotRetryable, RunInProgress
from detent.lifecycle.library import PIPELINE_RUN
from detent.model.records import Moved

__all__ = ["CANCELLED_FROM", "RETRIED_FROM", "cancelled", "not_retried", "wrong_state"]

RETRIED_FROM = ("failed", "consolidation_skipped", "cancelled")
CANCELLED_FROM = ("created", "workers_running", "consolidation_skipped", "consolidation_triggered", "consolidating")

_FOUND = {
    "unplanned": "its plan failed, so it has no partitions",
    "ending": "the jobs of some partitions have not ended yet since it was cancelled",
    "swept": "its staged records were removed by retention",
    "jobless": "the job of a failed partition was removed by retention or declared done by hand",
}


def cancelled(run_id: int, was: str | None) -> Moved | DetentError:
    """Return the answer of a cancel of a run that was in this state; None if there is no such run."""
    if was is None:
        return NotFound("pipeline_run", str(run_id))
    if was not in (*CANCELLED_FROM, "cancelled"):
        return InvalidTransition("pipeline_run", str(run_id), was, "cancelled", PIPELINE_RUN.allowed(was), "cancel")
    return Moved(str(run_id), "cancelled", was != "cancelled")


def wrong_state(run_id: int, state: str) -> DetentError:
    """Return the refusal for a run in a state that a retry does not lead from."""
    allowed = PIPELINE_RUN.allowed(state)
    return InvalidTransition("pipeline_run", str(run_id), state, "workers_running", allowed, "retry", RETRIED_FROM)


def not_retried(run_id: int, watermark: str, instead: str, other: int | None) -> DetentError:
    """Return the refusal for what was found instead of a run that can go on; `other` is the run in its way."""
    if instead == "active":
        return RunInProgress(watermark, other or 0)
    if instead == "passed":
        return NotRetryable(run_id, f"run {other} has moved the watermark {watermark!r} since")
    return NotRetryable(run_id, _FOUND[instead])
