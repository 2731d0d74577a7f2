"""Why a pipeline run is not retried, in the same words on every database."""

from __future__ import annotations

from detent.errors import DetentError, InvalidTransition, NotRetryable, RunInProgress
from detent.lifecycle.library import PIPELINE_RUN

__all__ = ["RETRIED_FROM", "not_retried", "wrong_state"]

RETRIED_FROM = ("failed", "consolidation_skipped")

_FOUND = {
    "unplanned": "its plan failed, so it has no partitions",
    "swept": "its staged records were removed by retention",
    "jobless": "the job of a failed partition was removed by retention or declared done by hand",
}


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
