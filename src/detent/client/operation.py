"""Doing something to all jobs that fit, as one operation that can be watched and stopped."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from detent.client.client import actor_and_reason, one
from detent.client.job import Job
from detent.declare.settings import Settings
from detent.declare.task import check_priority
from detent.errors import InvalidInput, JobTimeout, NotFound
from detent.model import jsondoor
from detent.model.clock import Clock
from detent.model.ids import Ids
from detent.model.records import Moved
from detent.model.service_records import Action, NewOperation, OperationRow
from detent.store.contract import JobFilter, JobSearch, Verbs
from detent.store.operations import metadata_text

__all__ = ["Jobs", "Operation", "Operations"]

_PORTION = 1000


class Operation:
    """An operation by its id, as of the last look: `refresh()` looks again.

    Workers carry it on by themselves; `wait()` does its part too, so that it gets done where no worker runs.
    """

    def __init__(self, row: OperationRow, verbs: Verbs, clock: Clock, settings: Settings) -> None:
        self.row = row
        self._verbs = verbs
        self._clock = clock
        self._settings = settings

    def __repr__(self) -> str:
        return f"<Operation {self.id} {self.row.action} {self.state}: {self.changed} changed>"

    @property
    def id(self) -> int:
        """Its number."""
        return self.row.id

    @property
    def state(self) -> str:
        """running, done or cancelled."""
        return self.row.state

    @property
    def changed(self) -> int:
        """How many jobs it has changed so far."""
        return self.row.changed

    @property
    def refused(self) -> int:
        """How many jobs fitted and could not be changed: the lifecycle has no such move from where they were."""
        return self.row.refused

    def refresh(self) -> Operation:
        """Look again. `NotFound`."""
        row = self._verbs.operation_get(self.id)
        if row is None:
            raise NotFound("operation", str(self.id))
        self.row = row
        return self

    def step(self) -> Operation:
        """Do the next portion of it, and look."""
        self.row = one(self._verbs.operation_step(self.id, _PORTION))
        return self

    def wait(self, timeout: float | None = None) -> Operation:
        """This operation, when it has ended. `JobTimeout` (a TimeoutError) after `timeout` seconds; it goes on."""
        begun = self._clock.monotonic()
        while self.step().state == "running":
            waited = self._clock.monotonic() - begun
            if timeout is not None and waited >= timeout:
                raise JobTimeout(self.id, "running", waited)
        return self

    def cancel(self, *, actor: str, reason: str | None = None) -> Moved:
        """Stop it where it is; what is done stays done."""
        answer = one(self._verbs.operation_cancel(self.id, *actor_and_reason(actor, reason, self._settings)))
        self.refresh()
        return answer


class Operations:
    """Begins operations, and finds them again."""

    def __init__(self, verbs: Callable[[], Verbs], ids: Ids, clock: Clock, settings: Settings) -> None:
        self._verbs = verbs
        self._ids = ids
        self._clock = clock
        self._settings = settings

    def start(
        self,
        chosen: JobSearch,
        action: Action,
        actor: str,
        reason: str | None,
        *,
        queue: str | None = None,
        priority: int | None = None,
    ) -> Operation:
        """Begin to do it to every job there is now that fits."""
        who, why = actor_and_reason(actor, reason, self._settings)
        if queue is not None:
            jsondoor.text(queue, field="queue", bytes_max=self._settings.name_max)
        if priority is not None:
            check_priority(priority)
        (number,) = self._ids.take(1)
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
            key=chosen.key,
            correlation_id=chosen.correlation_id,
            run_id=chosen.run_id,
            worker=chosen.worker,
            error=chosen.error,
            metadata=metadata_text(chosen.metadata),
            since=chosen.since,
            until=chosen.until,
        )
        return self._handle(self._verbs().operation_start(item))

    def get(self, operation_id: int) -> Operation:
        """The operation as it stands. `NotFound`."""
        row = self._verbs().operation_get(operation_id)
        if row is None:
            raise NotFound("operation", str(operation_id))
        return self._handle(row)

    def list(self, state: str | None, limit: int) -> list[Operation]:
        """The newest first."""
        return [self._handle(row) for row in self._verbs().operation_list(state, limit)]

    def count(self, chosen: JobSearch) -> int:
        """How many jobs fit. Page by page, if counts by state do not tell."""
        every = JobFilter(chosen.state, chosen.task, chosen.queue, chosen.tenant)
        if chosen == JobSearch(every.state, every.task, every.queue, every.tenant):
            return self._verbs().job_count(every)
        found, after = 0, None
        while True:
            page = self._verbs().job_list(chosen, after, _PORTION)
            found += len(page.rows)
            if page.next is None:
                return found
            after = page.next

    def _handle(self, row: OperationRow) -> Operation:
        return Operation(row, self._verbs(), self._clock, self._settings)


class Jobs(list[Job[Any]]):
    """The jobs that were asked for; and, for what is done to many at once, the filter itself.

    As a list it holds at most as many as were asked for; `next` is the `after` of the next page, None at the end.
    `count()` and the actions mean every job that fits, so the actions refuse a selection that was cut off (`cut_by`
    names what by).
    """

    def __init__(
        self,
        found: Iterable[Job[Any]],
        chosen: JobSearch,
        operations: Operations,
        *,
        cut_by: str | None = None,
        next: str | None = None,
    ) -> None:
        super().__init__(found)
        self._chosen = chosen
        self._operations = operations
        self._cut_by = cut_by
        self.next = next

    def count(self, *value: Any) -> int:
        """How many jobs fit, now: what an action would look at. With a value, how often it is in the list."""
        if value:
            return super().count(value[0])
        return self._operations.count(self._chosen)

    def retry(self, *, actor: str, reason: str | None = None) -> Operation:
        """Bring all of them that rest without success back to pending."""
        return self._start("retry", actor, reason)

    def cancel(self, *, actor: str, reason: str | None = None) -> Operation:
        """Stop all of them: pending at once, running at their next sign of life."""
        return self._start("cancel", actor, reason)

    def discard(self, *, actor: str, reason: str | None = None) -> Operation:
        """Give all of them up that are quarantined or failed."""
        return self._start("discard", actor, reason)

    def move(
        self, *, queue: str | None = None, priority: int | None = None, actor: str, reason: str | None = None
    ) -> Operation:
        """Put all of them that are pending into another queue, or give them another priority."""
        if queue is None and priority is None:
            raise InvalidInput("queue", "neither queue nor priority", "where to move them")
        return self._start("move", actor, reason, queue=queue, priority=priority)

    def _start(self, action: Action, actor: str, reason: str | None, **how: Any) -> Operation:
        if self._cut_by is not None:
            found = f"{action} of a selection that was cut off by {self._cut_by}"
            allowed = f"a selection without it, since {action} means every job that fits; or the handles one by one"
            raise InvalidInput(self._cut_by, found, allowed)
        return self._operations.start(self._chosen, action, actor, reason, **how)
