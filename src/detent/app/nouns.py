"""The nouns of an application: `app.jobs`, `app.queues`, …"""

from __future__ import annotations

from contextlib import AbstractContextManager

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
from detent.client.engine import Engine
from detent.client.graph import Graph
from detent.declare.settings import Settings
from detent.ops.ops import Ops

__all__ = ["Nouns"]


class Nouns:
    """Every noun is a small object on the engine of the application."""

    settings: Settings
    _engine: Engine
    _registry: Registry

    @property
    def actor(self) -> str:
        """Default actor for the record: the setting `actor`. A call or `acting_as` can name another one."""
        return self.settings.actor

    def acting_as(self, actor: str, *, reason: str | None = None) -> AbstractContextManager[None]:
        """Use this actor and reason for every change inside a `with` block that names none itself. The block covers the
        calls of its own thread or asyncio task, and of tasks that it starts. `InvalidInput`."""
        return acting_as(actor, reason, self.settings)

    def graph(self, name: str, *, key: str | None = None, tenant: str = "") -> Graph:
        """Return a new graph of calls: `graph.add(call, after=[…])` for each node, then `graph.start()`. A graph of the
        same name and key is the same run. Nodes read results of others with `ctx.result_of(name, kind)`."""
        return Graph(self._engine, name, key, tenant)

    @property
    def jobs(self) -> Jobs:
        """Jobs: get, list, count, and act on many."""
        return Jobs(self._engine)

    @property
    def dead(self) -> DeadJobs:
        """Jobs that failed for good: list and report."""
        return DeadJobs(self._engine)

    @property
    def operations(self) -> Operations:
        """Operations on many jobs: get and list."""
        return Operations(self._engine)

    @property
    def queues(self) -> Queues:
        """Queues: list, pause, resume, limit."""
        return Queues(self._engine, self._registry)

    @property
    def limits(self) -> Limits:
        """Limits: list, pause, resume, remove."""
        return Limits(self._engine)

    @property
    def workers(self) -> Workers:
        """Workers: list, get, drain."""
        return Workers(self._engine)

    @property
    def schedules(self) -> Schedules:
        """Schedules: set, list, pause, resume, run now."""
        return Schedules(self._engine, self._registry)

    @property
    def runs(self) -> Runs:
        """Runs of batches and pipelines: preview, start, get, list."""
        return Runs(self._engine, self._registry)

    @property
    def workflows(self) -> Workflows:
        """Workflows: get, list, what they wait for, signal."""
        return Workflows(self._engine)

    @property
    def watermarks(self) -> Watermarks:
        """How far each source has been ingested: get and list."""
        return Watermarks(self._engine)

    @property
    def alerts(self) -> Alerts:
        """Alerts and their policies: list, acknowledge, resolve."""
        return Alerts(self._engine)

    @property
    def lifecycles(self) -> Lifecycles:
        """Lifecycles for tables of your own: attach, move, history."""
        return Lifecycles(self._engine, self._registry)

    @property
    def record(self) -> Record:
        """The record of changes: search, verify, repair."""
        return Record(self._engine)

    @property
    def identities(self) -> Identities:
        """The identities of the database: list, renew."""
        return Identities(self._engine)

    @property
    def tokens(self) -> Tokens:
        """Tokens of the HTTP API: create, list, revoke."""
        return Tokens(self._engine)

    @property
    def ops(self) -> Ops:
        """Ops runs: builds, deploys and backups that any language may queue and work on."""
        return Ops(self._engine)

    @property
    def webhooks(self) -> Webhooks:
        """Declared webhooks: list."""
        return Webhooks(self._registry)
