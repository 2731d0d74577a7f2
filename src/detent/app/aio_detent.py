"""`app.aio`: the async twin of the application."""

from __future__ import annotations

import asyncio
from contextlib import AbstractContextManager
from datetime import datetime

from detent.app.aio_alerts import AsyncAlerts
from detent.app.aio_jobs import AsyncDeadJobs, AsyncJobs, AsyncOperations
from detent.app.aio_lifecycles import AsyncLifecycles
from detent.app.aio_queues import AsyncLimits, AsyncQueues
from detent.app.aio_record import AsyncIdentities, AsyncRecord
from detent.app.aio_runs import AsyncRuns, AsyncWatermarks
from detent.app.aio_schedules import AsyncSchedules
from detent.app.aio_tokens import AsyncTokens
from detent.app.aio_webhooks import AsyncWebhooks
from detent.app.aio_workers import AsyncWorkers
from detent.app.aio_workflows import AsyncWorkflows
from detent.app.alerts import Alerts
from detent.app.jobs import DeadJobs, Jobs, Operations
from detent.app.lifecycles import Lifecycles
from detent.app.queues import Limits, Queues
from detent.app.record import Identities, Record
from detent.app.registry import Registry
from detent.app.runs import Runs, Watermarks
from detent.app.schedules import Schedules
from detent.app.tokens import Tokens
from detent.app.webhooks import Webhooks
from detent.app.workers import Workers
from detent.app.workflows import Workflows
from detent.client.actor import acting_as
from detent.client.aio_client import AioClient
from detent.client.aio_graph import AsyncGraph
from detent.client.engine import Engine
from detent.model.figure_records import Figures, Rates
from detent.ops.aio_ops import AsyncOps
from detent.ops.ops import Ops
from detent.views.figures import figures_since
from detent.views.rates import Step, rates_since

__all__ = ["AsyncDetent"]


class AsyncDetent(AioClient):
    """The nouns and verbs of `Detent`, awaited. Nothing blocks the event loop."""

    def __init__(self, engine: Engine, registry: Registry) -> None:
        super().__init__(engine)
        self._registry = registry

    def acting_as(self, actor: str, *, reason: str | None = None) -> AbstractContextManager[None]:
        """Use this actor and reason for every change inside a `with` block that names none itself."""
        return acting_as(actor, reason, self._engine.settings)

    def graph(self, name: str, *, key: str | None = None, tenant: str = "") -> AsyncGraph:
        """Return a new graph of calls, as `app.graph` does. Its `start` is awaited."""
        return AsyncGraph(self._engine, name, key, tenant)

    async def figures(self, *, since: datetime | None = None, task: str | None = None) -> Figures:
        """Return figures of the last 24 hours, or since another time within the last 31 days; of all tasks, or one."""
        return await asyncio.to_thread(lambda: figures_since(self._engine.store, since, task, self._engine.settings))

    async def rates(self, *, since: datetime | None = None, step: Step = "minute") -> Rates:
        """Return how many jobs moved in each minute of the last hour, or in each hour of the last 24."""
        return await asyncio.to_thread(lambda: rates_since(self._engine.store, since, step))

    @property
    def jobs(self) -> AsyncJobs:
        """Jobs: get, list, count, and act on many."""
        return AsyncJobs(Jobs(self._engine))

    @property
    def dead(self) -> AsyncDeadJobs:
        """Jobs that failed for good: list and report."""
        return AsyncDeadJobs(DeadJobs(self._engine))

    @property
    def operations(self) -> AsyncOperations:
        """Operations on many jobs: get and list."""
        return AsyncOperations(Operations(self._engine))

    @property
    def queues(self) -> AsyncQueues:
        """Queues: list, pause, resume, limit."""
        return AsyncQueues(Queues(self._engine, self._registry))

    @property
    def limits(self) -> AsyncLimits:
        """Limits: list, pause, resume, remove."""
        return AsyncLimits(Limits(self._engine))

    @property
    def workers(self) -> AsyncWorkers:
        """Workers: list, get, drain."""
        return AsyncWorkers(Workers(self._engine))

    @property
    def schedules(self) -> AsyncSchedules:
        """Schedules: set, list, pause, resume, run now."""
        return AsyncSchedules(Schedules(self._engine, self._registry))

    @property
    def runs(self) -> AsyncRuns:
        """Runs of batches and pipelines: preview, start, get, list."""
        return AsyncRuns(Runs(self._engine, self._registry))

    @property
    def workflows(self) -> AsyncWorkflows:
        """Workflows: get, list, what they wait for, signal."""
        return AsyncWorkflows(Workflows(self._engine))

    @property
    def watermarks(self) -> AsyncWatermarks:
        """How far each source has been ingested: get and list."""
        return AsyncWatermarks(Watermarks(self._engine))

    @property
    def alerts(self) -> AsyncAlerts:
        """Alerts and their policies: list, acknowledge, resolve."""
        return AsyncAlerts(Alerts(self._engine))

    @property
    def lifecycles(self) -> AsyncLifecycles:
        """Lifecycles for tables of your own: attach, move, history."""
        return AsyncLifecycles(Lifecycles(self._engine, self._registry))

    @property
    def record(self) -> AsyncRecord:
        """The record of changes: search, verify, repair."""
        return AsyncRecord(Record(self._engine))

    @property
    def identities(self) -> AsyncIdentities:
        """The identities of the database: list, renew."""
        return AsyncIdentities(Identities(self._engine))

    @property
    def tokens(self) -> AsyncTokens:
        """Tokens of the HTTP API: create, list, revoke."""
        return AsyncTokens(Tokens(self._engine))

    @property
    def ops(self) -> AsyncOps:
        """Ops runs: builds, deploys and backups that any language may queue and work on."""
        return AsyncOps(Ops(self._engine))

    @property
    def webhooks(self) -> AsyncWebhooks:
        """Declared webhooks: list."""
        return AsyncWebhooks(Webhooks(self._registry))
