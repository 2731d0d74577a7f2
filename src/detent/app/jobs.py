"""`app.jobs`, `app.dead` and `app.operations`: finding jobs, and acting on one or on many."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from detent.client.engine import Engine
from detent.client.job import Job
from detent.client.job_verbs import check_id
from detent.client.list_page import ListPage, check_limit, checked_search, place_of, text_of
from detent.client.operation import JobSelection, Operation
from detent.declare.task import check_seconds
from detent.errors import InvalidInput, NotFound
from detent.model import json_codec
from detent.model.clock import to_micros
from detent.model.records import Count
from detent.model.service_records import DeadGroup, SilentRow

__all__ = ["DeadJobs", "Jobs", "Operations"]

_STALE_AFTER = 300.0
_STALLED_AFTER = 600.0
_OPERATION_STATES = ("running", "done", "cancelled")


class Jobs:
    """The jobs on record."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def get(self, job_id: int | str) -> Job[Any]:
        """Return the handle of a job. `NotFound`."""
        number = check_id(job_id)
        (row,) = self._engine.store.job_get([number])
        if row is None:
            raise NotFound("job", str(number))
        return self._engine.job(row)._read_status(row)

    def list(
        self,
        *,
        state: str | None = None,
        task: str | None = None,
        queue: str | None = None,
        tenant: str | None = None,
        key: str | None = None,
        correlation_id: str | None = None,
        run: int | str | None = None,
        worker: str | None = None,
        error: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int = 100,
        after: str | None = None,
    ) -> ListPage[Job[Any]]:
        """List matching jobs, the newest first by creation. `.next` of the list is the `after` of the next page.

        `key` (within a tenant), `run`, `correlation_id`, `since` and `until` (time of creation) use an index. The other
        filters are compared job by job; `error` matches a part of the text, and `metadata` members such as
        `{"order": 17}`. A page looks at 25,000 jobs at most, so it may be short or empty although it has a `next`.
        `InvalidInput`.
        """
        chosen = checked_search({name: value for name, value in locals().items() if name != "self"}, self._engine)
        page = self._engine.store.job_list(chosen, place_of(after), check_limit(limit))
        return ListPage(map(self._engine.job, page.rows), text_of(page.next))

    def where(
        self,
        *,
        state: str | None = None,
        task: str | None = None,
        queue: str | None = None,
        tenant: str | None = None,
        key: str | None = None,
        correlation_id: str | None = None,
        run: int | str | None = None,
        worker: str | None = None,
        error: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> JobSelection:
        """Describe a selection of jobs by the filters of `list`, without reading anything. You can count it, or act on
        all of it: `app.jobs.where(state="quarantined", queue="mail").retry()`. `InvalidInput`."""
        chosen = checked_search({name: value for name, value in locals().items() if name != "self"}, self._engine)
        return JobSelection(chosen, self._engine)

    def counts(
        self, *, at: datetime | None = None, tenant: str | None = None, by_tenant: bool = False
    ) -> ListPage[Count]:
        """Count jobs by queue and state: of all tenants together, or of one. With `by_tenant`, count them by tenant
        too, which takes longer if there are many tenants.

        With `at`, count them at a past time within retention. That reads the whole record. `InvalidInput`.
        """
        if tenant is not None:
            json_codec.text(tenant, field="tenant", bytes_max=self._engine.settings.name_max, allow_empty=True)
        if at is not None:
            to_micros(at, field="at")
            found = self._engine.store.counts_as_of(at)
            found = found if tenant is None else [one for one in found if one.tenant == tenant]
            return ListPage(found if by_tenant or tenant is not None else _of_all_tenants(found))
        if by_tenant or tenant is not None:
            return ListPage(self._engine.store.counts(tenant))
        return ListPage(Count(None, one.queue, one.state, one.jobs) for one in self._engine.store.queue_depths())

    def silent(
        self,
        *,
        queue: str | None = None,
        stale_after: float = _STALE_AFTER,
        stalled_after: float = _STALLED_AFTER,
        limit: int = 100,
    ) -> ListPage[SilentRow]:
        """List running jobs that are silent, the longest silent first. A job is `stale` if it has not started
        `stale_after` seconds after its claim, and `stalled` if it has started and wrote no event for `stalled_after`
        seconds. The options of its task take precedence. To give up such a job, cancel it."""
        for field, seconds in (("stale_after", stale_after), ("stalled_after", stalled_after)):
            check_seconds(field, seconds)
        if queue is not None:
            json_codec.text(queue, field="queue", bytes_max=self._engine.settings.name_max)
        return ListPage(self._engine.store.job_silent(queue, stale_after, stalled_after, check_limit(limit)))


class DeadJobs:
    """Jobs that failed for good: those in the state `quarantined`."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def list(
        self,
        *,
        task: str | None = None,
        queue: str | None = None,
        tenant: str | None = None,
        limit: int = 100,
        after: str | None = None,
    ) -> ListPage[Job[Any]]:
        """List dead jobs, the newest first by creation."""
        return Jobs(self._engine).list(
            state="quarantined", task=task, queue=queue, tenant=tenant, limit=limit, after=after
        )

    def report(
        self, *, task: str | None = None, queue: str | None = None, tenant: str | None = None, limit: int = 100
    ) -> ListPage[DeadGroup]:
        """Summarise why jobs died. One group for each task, queue, reason and kind of error, with the number of jobs,
        their ages, their attempts and one of them as an example. The largest groups come first."""
        for field, name in (("task", task), ("queue", queue), ("tenant", tenant)):
            if name is not None:
                json_codec.text(name, field=field, bytes_max=self._engine.settings.name_max, allow_empty=True)
        return ListPage(self._engine.store.dead_report(task, queue, tenant, check_limit(limit)))


class Operations:
    """Operations on many jobs, as `app.jobs.where(...)` starts them."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def get(self, operation_id: int | str) -> Operation:
        """Return the handle of an operation. `NotFound`."""
        row = self._engine.store.operation_get(check_id(operation_id, "operation id"))
        if row is None:
            raise NotFound("operation", str(operation_id))
        return Operation(row, self._engine)

    def list(self, *, state: str | None = None, limit: int = 100, after: str | None = None) -> ListPage[Operation]:
        """List operations, the newest first. `.next` of the list is the `after` of the next page. `InvalidInput`."""
        if state is not None and state not in _OPERATION_STATES:
            raise InvalidInput("state", repr(state)[:80], ", ".join(_OPERATION_STATES))
        most, below = check_limit(limit), None if after is None else check_id(after, "after")
        found = [Operation(row, self._engine) for row in self._engine.store.operation_list(state, most, below)]
        return ListPage(found, str(found[-1].id) if len(found) == most else None)


def _of_all_tenants(counts: Iterable[Count]) -> list[Count]:
    totals: dict[tuple[str, str], int] = {}
    for one in counts:
        totals[one.queue, one.state] = totals.get((one.queue, one.state), 0) + one.jobs
    return [Count(None, *key, jobs) for key, jobs in sorted(totals.items())]
