"""Acting on all jobs that match a filter, as one operation that can be followed and cancelled."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Self

from detent.client.actor import actor_and_reason
from detent.client.handle import NumberedHandle
from detent.client.job_verbs import cancel_reason, unwrap
from detent.client.polling import pauses_until, sleep_through
from detent.declare.task import check_priority
from detent.errors import InvalidInput, JobTimeout, NotFound
from detent.model import json_codec
from detent.model.records import Moved
from detent.model.service_records import Action, NewOperation, OperationRow
from detent.store.jobs.filters import JobFilter, JobSearch
from detent.store.operations.stored_request import metadata_text

if TYPE_CHECKING:
    from detent.client.engine import Engine

__all__ = ["JobSelection", "Operation", "OperationSnapshot"]

_PORTION = 1000


class OperationSnapshot(NumberedHandle[OperationRow]):
    """An operation as it was when it was last read. Its state is running, done or cancelled."""

    def __repr__(self) -> str:
        return f"<Operation {self.id} {self.row.action} {self.state}: {self.changed} changed>"

    @property
    def changed(self) -> int:
        """Number of jobs changed so far."""
        return self.row.changed

    @property
    def refused(self) -> int:
        """Number of matching jobs that could not be changed, because their state does not allow it."""
        return self.row.refused


class Operation(OperationSnapshot):
    """Handle of an operation on many jobs. Workers carry it out. `wait()` does its share, so it ends without workers
    too."""

    def refresh(self) -> Self:
        """Read the operation again, and return this handle. `NotFound`."""
        row = self._engine.store.operation_get(self.id)
        if row is None:
            raise NotFound("operation", str(self.id))
        self.row = row
        return self

    def step(self) -> Self:
        """Carry out the next portion, and return this handle, read again."""
        self.row = unwrap(self._engine.store.operation_step(self.id, _PORTION))
        return self

    def wait(self, timeout: float | None = None) -> Self:
        """Carry the operation out until it has ended, and return this handle. `JobTimeout` (a TimeoutError) after
        `timeout` seconds; workers continue it."""
        sleep_through(self._wait_steps(timeout), self._engine.clock)
        return self

    def _wait_steps(self, timeout: float | None = None) -> Iterator[float]:
        engine = self._engine

        def is_done() -> bool:
            return self.step().state != "running"

        def late(waited: float) -> JobTimeout:
            return JobTimeout(self.id, "running", waited)

        # No pauses: each check does a share of the work.
        return pauses_until(is_done, timeout, engine.clock, engine.settings, late, first=0.0)

    def cancel(self, *, actor: str | None = None, reason: str | None = None) -> Moved:
        """Cancel the operation; jobs that it has changed stay changed."""
        store = self._engine.store
        answer = unwrap(store.operation_cancel(self.id, *actor_and_reason(actor, reason, self._engine.settings)))
        self.refresh()
        return answer


class JobSelection:
    """All jobs that match a filter. `count` counts them; the other verbs start an operation on all of them."""

    def __init__(self, chosen: JobSearch, engine: Engine) -> None:
        self._chosen = chosen
        self._engine = engine

    def count(self) -> int:
        """Return how many jobs match now. It is fast for state, task, queue and tenant; other filters read jobs."""
        return self._count_within(None)[0]

    def _count_within(self, pages_max: int | None) -> tuple[int, bool]:
        """Return how many jobs match, and whether all were counted: a search that reads jobs ends after `pages_max`
        pages."""
        chosen, store = self._chosen, self._engine.store
        every = JobFilter(chosen.state, chosen.task, chosen.queue, chosen.tenant)
        if chosen == JobSearch(every.state, every.task, every.queue, every.tenant):
            return store.job_count(every), True
        found, after = 0, None
        for _ in itertools.count() if pages_max is None else range(pages_max):
            page = store.job_list(chosen, after, _PORTION)
            found += len(page.rows)
            if page.next is None:
                return found, True
            after = page.next
        return found, False

    def retry(self, *, actor: str | None = None, reason: str | None = None) -> Operation:
        """Bring failed, quarantined and cancelled jobs back to pending."""
        return self._start("retry", actor, reason)

    def cancel(self, *, undo: bool = True, actor: str | None = None, reason: str | None = None) -> Operation:
        """Cancel jobs: pending ones at once, running ones within a second or two. Workflows undo their steps first, and
        take their children with them; with `undo=False` nothing is undone, and a reason is required. `InvalidInput`."""
        cancel_reason(undo, actor, reason, self._engine.settings)
        return self._start("cancel", actor, reason, undo=undo)

    def discard(self, *, actor: str | None = None, reason: str | None = None) -> Operation:
        """Discard quarantined and failed jobs."""
        return self._start("discard", actor, reason)

    def move(
        self,
        *,
        queue: str | None = None,
        priority: int | None = None,
        actor: str | None = None,
        reason: str | None = None,
    ) -> Operation:
        """Move pending jobs to another queue, or change their priority. `InvalidInput`."""
        if queue is None and priority is None:
            raise InvalidInput("queue", "neither queue nor priority", "a queue, a priority, or both")
        return self._start("move", actor, reason, queue=queue, priority=priority)

    def _start(self, action: Action, actor: str | None, reason: str | None, **where: Any) -> Operation:
        engine, chosen = self._engine, self._chosen
        who, why = actor_and_reason(actor, reason, engine.settings)
        queue, priority = where.get("queue"), where.get("priority")
        if queue is not None:
            json_codec.text(queue, field="queue", bytes_max=engine.settings.name_max)
        if priority is not None:
            check_priority(priority)
        (number,) = engine.ids.take(1)
        item = NewOperation(
            id=number,
            action=action,
            actor=who,
            reason=why,
            job_state=chosen.state,
            task=chosen.task,
            queue=chosen.queue,
            tenant=chosen.tenant,
            to_queue=queue,
            to_priority=priority,
            undo=where.get("undo", True),
            key=chosen.key,
            correlation_id=chosen.correlation_id,
            run_id=chosen.run_id,
            worker=chosen.worker,
            error=chosen.error,
            metadata=metadata_text(chosen.metadata),
            since=chosen.since,
            until=chosen.until,
        )
        return Operation(engine.store.operation_start(item), engine)
