"""Errors of callers that wait for a job."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from detent.errors.base import DetentError, essence

__all__ = ["JobFailed", "JobTimeout", "ResultExpired"]


@dataclass(eq=False)
class JobFailed(DetentError):
    """The awaited job ended without success. `error` is its whole error, the message a short form."""

    job_id: int
    state: str
    error: str

    def __str__(self) -> str:
        return f"job {self.job_id} is {self.state}: {essence(self.error) or 'no error recorded'}"


@dataclass(eq=False)
class ResultExpired(DetentError):
    """The job succeeded, but the time for which its task keeps results is over."""

    job_id: int
    until: datetime

    def __str__(self) -> str:
        return (
            f"job {self.job_id} succeeded, but its result was kept only until {self.until.isoformat()}; "
            f"raise result_ttl of its task to keep later results for longer"
        )


@dataclass(eq=False)
class JobTimeout(DetentError, TimeoutError):
    """The awaited job did not end in time; it goes on."""

    job_id: int
    state: str
    waited: float

    def __str__(self) -> str:
        waited = f"{round(self.waited, 3):g} s"
        return f"job {self.job_id} is still {self.state} after {waited} of waiting; it goes on"
