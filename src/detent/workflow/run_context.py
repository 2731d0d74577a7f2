"""What operations need from the program that runs a workflow's function."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Protocol

from detent.declare.settings import Settings
from detent.declare.task import Call, Task
from detent.model.records import Claimed, NewJob
from detent.model.workflow_records import StepBegun
from detent.store.contract import Store

__all__ = ["RunContext"]


class RunContext(Protocol):
    """An attempt at a workflow."""

    @property
    def claimed(self) -> Claimed:
        """The job as it was claimed."""
        ...

    @property
    def settings(self) -> Settings:
        """The settings of the application."""
        ...

    @property
    def store(self) -> Store:
        """The store."""
        ...

    @property
    def job_id(self) -> int:
        """Id of the job."""
        ...

    @property
    def cancelled(self) -> bool:
        """Whether the function should stop."""
        ...

    def raise_if_cancelled(self) -> None:
        """Raise `JobCancelled` if the function should stop."""
        ...

    def request_cancel(self) -> None:
        """Tell the function to stop: a cancel was requested."""
        ...

    def event(self, message: str, /, *, level: str = "info", key: str | None = None, **payload: Any) -> None:
        """Append an event to the job."""
        ...

    def runner(self) -> object:
        """Return what runs this branch of the function: a thread or a task."""
        ...

    def monotonic(self) -> float:
        """Return seconds that never decrease."""
        ...

    def now_here(self) -> datetime:
        """Return the time of this machine."""
        ...

    def chance(self) -> float:
        """Return a random number for the jitter of a delay; another one each time."""
        ...

    def find_task(self, name: str) -> Task[..., Any, Any]:
        """Return a declared task. `UnknownTask`."""
        ...

    def child_job(self, call: Call[Any], job_id: int) -> NewJob:
        """Return a child as a job."""
        ...

    def why_in_doubt(self, begun: StepBegun | None, path: str) -> str | None:
        """Return why a step that is not on record may have had its effect; None if there is no doubt."""
        ...
