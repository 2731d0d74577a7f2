"""Graphs for an event loop."""

from __future__ import annotations

import asyncio

from detent.client.aio_job import AsyncJob
from detent.client.graph import GraphPlan
from detent.client.job import Origin

__all__ = ["AsyncGraph"]


class AsyncGraph(GraphPlan):
    """A graph of calls, which `app.aio.graph(name)` returns: add nodes, then await its start."""

    async def start(self) -> AsyncJob[None]:
        """Enqueue all nodes in one transaction and return the job that stands for the graph, as `Graph.start` does."""
        job_id, created = await asyncio.to_thread(self.started)
        return AsyncJob(job_id, Origin(self._engine, lambda _: None, None), created, None)
