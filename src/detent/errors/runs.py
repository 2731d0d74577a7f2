"""What is refused or missed about runs above the database."""

from __future__ import annotations

from dataclasses import dataclass

from detent.errors.root import DetentError, Refused, essence

__all__ = ["BatchChanged", "RunInProgress", "RunStuck", "RunTimeout"]


@dataclass(eq=False)
class BatchChanged(Refused):
    """The batch is declared otherwise than when its run was previewed: what was read may not be what would be done."""

    run_id: int
    batch: str

    def __str__(self) -> str:
        return (
            f"run {self.run_id} was previewed when the batch {self.batch!r} had other fields or another version; "
            f"preview it again, or apply it with accept_changed"
        )


@dataclass(eq=False)
class RunInProgress(Refused):
    """A run of this watermark has not ended: a second one would not know from where to go on."""

    watermark: str
    run_id: int

    def __str__(self) -> str:
        return (
            f"run {self.run_id} of the watermark {self.watermark!r} has not ended; "
            f"another one may start when it has completed or failed"
        )


@dataclass(eq=False)
class RunStuck(DetentError):
    """The awaited run does not get on: a job that all of it waits for has given up. Retried, it goes on."""

    run_id: int
    state: str
    error: str

    def __str__(self) -> str:
        said = essence(self.error) or "no error recorded"
        return f"run {self.run_id} is {self.state} and does not get on: {said}; retry its dead letter, and it does"


@dataclass(eq=False)
class RunTimeout(DetentError, TimeoutError):
    """The awaited run did not come that far in time; it goes on all the same."""

    run_id: int
    state: str
    waited: float

    def __str__(self) -> str:
        waited = f"{round(self.waited, 3):g} s"
        return f"run {self.run_id} is still {self.state} after {waited} of waiting; it goes on all the same"
