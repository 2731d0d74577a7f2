"""The async twin of: `app.ops`: queueing, claiming and finishing ops runs."""

# Generated from ops/ops.py by `python -m tests.surface.twins`. Change that file instead.

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from datetime import datetime
from typing import Any

from detent.client.aio_polling import aitems_of
from detent.client.list_page import ListPage
from detent.model.ops_records import EnvironmentRow, OpsEnd
from detent.model.records import EventRow
from detent.ops.ops import Ops
from detent.ops.ops_run import OpsRun

__all__ = ["AsyncOps"]


class AsyncOps:
    """The async twin of `Ops`: the same verbs, awaited."""

    def __init__(self, sync: Ops) -> None:
        self._sync = sync

    async def queue(
        self,
        project_id: str,
        env: str,
        *,
        git_sha: str | None = None,
        git_ref: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        key: str | None = None,
        expires_at: datetime | None = None,
    ) -> OpsRun:
        """Queue a run of a revision for an environment of a project. A new project or environment is created.

        The same key returns the same run, whatever its metadata. `KeyConflict` if project, environment, sha or ref
        differ. Keys of runs are separate from keys of jobs. A run that no worker has claimed by `expires_at` is
        cancelled. `InvalidInput`.
        """
        return await asyncio.to_thread(
            self._sync.queue,
            project_id,
            env,
            git_sha=git_sha,
            git_ref=git_ref,
            metadata=metadata,
            key=key,
            expires_at=expires_at,
        )

    async def cancel(self, run: OpsRun | str, *, actor: str | None = None, reason: str | None = None) -> OpsRun:
        """Cancel a run at once, whichever worker holds it; the worker's next call is refused. A no-op if it is
        cancelled already. `InvalidTransition` if it ended otherwise, `NotFound`.
        """
        return await asyncio.to_thread(self._sync.cancel, run, actor=actor, reason=reason)

    async def claim(self, worker: str) -> OpsRun | None:
        """Claim the run that was queued first, and return it with its token; None if no run is queued."""
        return await asyncio.to_thread(self._sync.claim, worker)

    async def event(
        self,
        run: OpsRun | str,
        message: str,
        *,
        level: str = "info",
        payload: Mapping[str, Any] | None = None,
        key: str | None = None,
        token: str | None = None,
    ) -> str:
        """Append an event, which also extends the lease, and return its id. The first one makes a claimed run running.

        An event with a key is stored once; without a key, the same event within ten seconds is stored once. A run that
        `claim` returned carries its token. `LeaseLost` if the run is not held, or by another claim; `NotFound`.
        """
        return await asyncio.to_thread(
            self._sync.event, run, message, level=level, payload=payload, key=key, token=token
        )

    async def renew(self, run: OpsRun | str, *, token: str | None = None) -> str:
        """Renew the lease of a run for ten minutes without an event. Return the state of the run, which stays.
        `LeaseLost` if the run is not held, or by another claim, as after a cancel; `NotFound`.
        """
        return await asyncio.to_thread(self._sync.renew, run, token=token)

    async def finish(
        self,
        run: OpsRun | str,
        state: OpsEnd,
        *,
        metadata: Mapping[str, Any] | None = None,
        token: str | None = None,
        actor: str | None = None,
        reason: str | None = None,
    ) -> OpsRun:
        """End a run as success, failed or cancelled, and merge the metadata with those it was queued with. The same end
        again is a no-op.

        The actor of a success or a failure is the worker that claimed the run. Those of a cancel are `actor` and
        `reason`; if they are not given, `cancelled_by` and `reason` of the metadata, then the worker of a run that
        `claim` returned. `error` of the metadata is the error of a failure. `InvalidTransition`, `LeaseLost`,
        `NotFound`.
        """
        return await asyncio.to_thread(
            self._sync.finish, run, state, metadata=metadata, token=token, actor=actor, reason=reason
        )

    async def get(self, run: OpsRun | str) -> OpsRun:
        """Return a run. `NotFound`."""
        return await asyncio.to_thread(self._sync.get, run)

    async def list(
        self,
        *,
        project_id: str | None = None,
        env: str | None = None,
        state: str | None = None,
        limit: int = 100,
        after: str | None = None,
    ) -> ListPage[OpsRun]:
        """List matching runs, the newest first. `.next` of the list is the `after` of the next page. `InvalidInput`."""
        return await asyncio.to_thread(
            self._sync.list, project_id=project_id, env=env, state=state, limit=limit, after=after
        )

    async def follow(self, run: OpsRun | str, *, wait: bool = True) -> AsyncIterator[EventRow]:
        """Yield the events of a run in order, and new ones until the run has ended; without `wait`, only those so far.
        `NotFound`.
        """
        sync = self._sync
        async for item in aitems_of(sync._follow_pages(run, wait=wait), sync._engine.clock):
            yield item

    async def environments(self, project_id: str | None = None) -> ListPage[EnvironmentRow]:
        """List environments, of all projects or of one, by project and name."""
        return await asyncio.to_thread(self._sync.environments, project_id)
