"""Errors of batch runs and pipeline runs."""

from __future__ import annotations

from dataclasses import dataclass

from detent.errors.base import DetentError, Refused, essence

__all__ = [
    "BatchChanged",
    "DuplicateTarget",
    "NotRetryable",
    "PartOfRun",
    "PreviewNotReady",
    "RunBusy",
    "RunInProgress",
    "RunStuck",
    "RunTimeout",
]


@dataclass(eq=False)
class BatchChanged(Refused):
    """The declaration of the batch has changed since its run was previewed, so the preview may no longer be right."""

    run_id: int
    batch: str

    def __str__(self) -> str:
        return (
            f"run {self.run_id} was previewed when the batch {self.batch!r} had other fields or another version; "
            f"preview it again, or apply it with accept_changed"
        )


@dataclass(eq=False)
class NotRetryable(Refused):
    """A failed pipeline run cannot be retried: what it would continue with is gone or out of date."""

    run_id: int
    found: str

    def __str__(self) -> str:
        return f"Run {self.run_id} cannot be retried: {self.found}. Start another run."


@dataclass(eq=False)
class PartOfRun(Refused):
    """A job of a pipeline run cannot be retried by itself: the run has continued without it."""

    job_id: int
    run_id: int

    def __str__(self) -> str:
        return (
            f"Job {self.job_id} cannot be retried by itself: it is part of pipeline run {self.run_id}. "
            f"Retry the run: `detent runs retry {self.run_id}`, or `run.retry()`."
        )


@dataclass(eq=False)
class RunInProgress(Refused):
    """A run of this watermark has not ended: a second one would not know where to start."""

    watermark: str
    run_id: int

    def __str__(self) -> str:
        return (
            f"run {self.run_id} of the watermark {self.watermark!r} has not ended; "
            f"another one may start when it has completed or failed"
        )


@dataclass(eq=False)
class RunStuck(DetentError):
    """The awaited run cannot continue by itself: a job that it depends on is dead, or it has ended in another state
    than the awaited one. `advice` says what to do."""

    run_id: int
    state: str
    error: str
    advice: str = "Retry its dead job to continue, or cancel the run."

    def __str__(self) -> str:
        said = essence(self.error) or "no error recorded"
        return f"run {self.run_id} is stuck in {self.state}: {said}. {self.advice}"


@dataclass(eq=False)
class RunTimeout(DetentError, TimeoutError):
    """The awaited run did not reach the state in time; it goes on."""

    run_id: int
    state: str
    waited: float

    def __str__(self) -> str:
        waited = f"{round(self.waited, 3):g} s"
        return f"run {self.run_id} is still {self.state} after {waited} of waiting; it goes on"


@dataclass(eq=False)
class PreviewNotReady(Refused):
    """A batch run cannot be applied before its preview is complete; nothing was changed."""

    run_id: int
    previewed: int
    total: int
    failed: int
    complete: bool = False  # every target was tried, and `failed` of them could not be previewed

    def __str__(self) -> str:
        if self.complete:
            return (
                f"run {self.run_id} cannot be applied: {self.failed} of {self.total} targets could not be previewed; "
                f"name those to apply, or apply with leave_failed"
            )
        return (
            f"run {self.run_id} cannot be applied yet: {self.previewed} of {self.total} targets known so far are "
            f"previewed; wait until the preview is complete"
        )


@dataclass(eq=False)
class DuplicateTarget(Refused):
    """A batch run names a target twice; nothing of this call was stored."""

    run_id: int
    ref: str
    n: int
    found_n: int

    def __str__(self) -> str:
        return (
            f"run {self.run_id} names the target {self.ref!r} twice, as number {self.found_n} and {self.n}; "
            f"targets() must return each target once, and in the same order every time"
        )


@dataclass(eq=False)
class RunBusy(Refused):
    """Another action on the run must end first; nothing was changed."""

    run_id: int
    asked: str
    found: str

    def __str__(self) -> str:
        return f"run {self.run_id}: {self.asked} is refused, because {self.found}"
