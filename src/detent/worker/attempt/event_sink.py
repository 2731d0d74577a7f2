"""Where an attempt writes its events and costs."""

from __future__ import annotations

from typing import Protocol

from detent.client.job_verbs import unwrap
from detent.model.limit_records import Charge
from detent.model.records import NewEvent
from detent.store.contract import Store
from detent.worker.attempt.workflow.step_writer import StepWriter

__all__ = ["DirectSink", "EventSink"]


class EventSink(Protocol):
    """Takes what an attempt writes besides its ending. The flusher of a child is one."""

    def event(self, line: NewEvent) -> None:
        """Take an event."""
        ...

    def charge(self, charge: Charge) -> None:
        """Take the cost of an attempt."""
        ...

    def flush(self, timeout: float | None = None) -> bool:
        """Wait until everything taken is durable; return False if that takes longer than `timeout`."""
        ...

    @property
    def steps(self) -> StepWriter:
        """What writes the records of workflows."""
        ...


class DirectSink:
    """Writes everything at once, and raises refusals. For tests."""

    def __init__(self, store: Store, worker: str = "test") -> None:
        self._store = store
        self.steps = StepWriter(store, worker)

    def event(self, line: NewEvent) -> None:
        """Write the event."""
        unwrap(self._store.event_append([line])[0])

    def charge(self, charge: Charge) -> None:
        """Write the cost."""
        unwrap(self._store.limit_charge([charge])[0])

    def flush(self, timeout: float | None = None) -> bool:
        """Return True: nothing waits."""
        return True

    def close(self) -> None:
        """End the threads that write for async functions."""
        self.steps.close()
        self.steps.loads.close()
