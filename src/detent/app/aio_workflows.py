"""The async twin of: `app.workflows`: finding workflows, what they wait for, and sending them signals."""

# Generated from app/workflows.py by `python -m tests.surface.twins`. Change that file instead.

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import Any

from detent.app.workflows import Workflows
from detent.client.job import JobSnapshot
from detent.client.list_page import ListPage
from detent.declare.task import Call
from detent.model.workflow_records import SignalSent, VersionCount, WaitRow, Workflow
from detent.workflow.aio_check import WorkflowCheck

__all__ = ["AsyncWorkflows"]


class AsyncWorkflows:
    """The async twin of `Workflows`: the same verbs, awaited."""

    def __init__(self, sync: Workflows) -> None:
        self._sync = sync

    async def get(self, job_id: int | str) -> Workflow:
        """Return a workflow: its job, what is on record about it, and what it waits for. For the verbs on it, get its
        handle with `app.jobs.get`. `NotFound`.
        """
        return await asyncio.to_thread(self._sync.get, job_id)

    async def list(
        self,
        *,
        task: str | None = None,
        version: int | None = None,
        state: str | None = None,
        tenant: str | None = None,
        since: datetime | None = None,
        limit: int = 100,
        after: str | None = None,
    ) -> ListPage[Workflow]:
        """List workflows that have recorded something, the newest first by id. `.next` of the list is the `after` of
        the next page.

        `state` is a state of a job, or `parked` for those that wait without a worker. `since` is about the time of
        creation. A page looks at 25,000 workflows at most, so it may be short or empty although it has a `next`. Jobs
        that have not recorded a step or a wait yet are in `app.jobs.list`. `InvalidInput`.
        """
        return await asyncio.to_thread(
            self._sync.list,
            task=task,
            version=version,
            state=state,
            tenant=tenant,
            since=since,
            limit=limit,
            after=after,
        )

    async def waits(
        self,
        *,
        signal: str | None = None,
        tenant: str | None = None,
        job_id: int | str | None = None,
        limit: int = 100,
        after: str | None = None,
    ) -> ListPage[WaitRow]:
        """List what parked workflows wait for, by job: signals, groups of children and times; or only those of one job,
        or those that wait for one signal. A workflow that waits for several things has a row for each. `.next` of the
        list is the `after` of the next page.

        A page looks at 25,000 rows at most, so it may be short or empty although it has a `next`: workflows that were
        woken and not claimed yet are passed over. `InvalidInput`.
        """
        return await asyncio.to_thread(
            self._sync.waits, signal=signal, tenant=tenant, job_id=job_id, limit=limit, after=after
        )

    async def versions(self, *, task: str | None = None) -> ListPage[VersionCount]:
        """Count the workflows that have begun and not ended, by task and by the version under which they began. A
        version without workflows needs no code any more. `InvalidInput`.
        """
        return await asyncio.to_thread(self._sync.versions, task=task)

    async def check(
        self, *, task: str | None = None, limit: int = 1000, after: str | None = None
    ) -> ListPage[WorkflowCheck]:
        """Replay parked workflows against this code, before it is deployed: without effects, up to the first step that
        is not on record. Say of each whether it continues, and where, or why it would be refused. The newest come
        first; `.next` of the list is the `after` of the next page.

        Nothing is written and no step is called; what the functions do between their steps is done. `InvalidInput`.
        """
        return await asyncio.to_thread(self._sync.check, task=task, limit=limit, after=after)

    async def signal(
        self,
        key: str | int | JobSnapshot[Any],
        name: str,
        payload: Any = None,
        *,
        tenant: str = "",
        dedupe: str | None = None,
        start: Call[Any] | None = None,
        actor: str | None = None,
        reason: str | None = None,
    ) -> SignalSent:
        """Send a signal to the workflow with this key (a string), or to a job by its id (a whole number) or handle.

        With `start`, a call, the workflow is created under the key if there is none, in the same transaction: so the
        first of several senders creates it, and no signal is lost. `dedupe` as for `job.signal`. `JobEnded`,
        `KeyConflict`, `MailboxFull`, `NotFound`, `InvalidInput`, `InvalidPayload`.
        """
        return await asyncio.to_thread(
            self._sync.signal, key, name, payload, tenant=tenant, dedupe=dedupe, start=start, actor=actor, reason=reason
        )

    async def redeem(
        self, token: str, payload: Any = None, *, actor: str | None = None, reason: str | None = None
    ) -> SignalSent:
        """Send the signal for which `ctx.token` made this token. It counts once: the same payload again is the same
        signal, and its `created` is False; another payload is refused.

        `WrongToken` if the token is not one of this database, `TokenUsed`, `WaitOver`, `JobEnded`, `MailboxFull`,
        `NotFound`, `InvalidPayload`.
        """
        return await asyncio.to_thread(self._sync.redeem, token, payload, actor=actor, reason=reason)
