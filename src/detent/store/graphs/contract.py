"""The verbs of graphs: jobs that start when others have ended.

A graph is a job of the task `detent.graph` that no worker claims. It is the parent of its nodes, which are ordinary
jobs. A node that follows others is pending and due never. The transaction that ends the last of them makes it ready, or
cancels it if one that it needs has ended for good without success. A node in quarantine has not ended for good: what
follows it waits, since a retry may save it. A graph ends with its last node: succeeded if all nodes have succeeded,
otherwise failed. A node that is retried opens a failed graph again.

To cancel a graph cancels its nodes; to retry it retries those that have ended without success.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from detent.errors import DetentError, IdConflict, KeyConflict
from detent.model.graph_records import GraphRow, GraphStarted, NewGraph, NodeResult, NodeRow
from detent.store.verb import verb

__all__ = ["GraphVerbs"]


class GraphVerbs(Protocol):
    """Graphs."""

    @verb("client", IdConflict, KeyConflict)
    def graph_start(self, item: NewGraph) -> GraphStarted | DetentError:
        """Enqueue a graph with all its nodes, in one transaction. If its key is taken by the same graph, that one is
        answered, and nothing is enqueued."""
        ...

    @verb("viewer")
    def graph_get(self, ids: Sequence[int]) -> list[GraphRow | None]:
        """Return graphs; None for a job that is no graph."""
        ...

    @verb("viewer")
    def node_list(self, graph_id: int, *, after_id: int = 0, limit: int = 1000) -> list[NodeRow]:
        """Return the nodes of a graph by id, after `after_id`."""
        ...

    @verb("viewer")
    def node_blockers(self, job_id: int, *, limit: int = 100) -> list[NodeRow]:
        """Return the nodes for which a node waits, by id; those that are in quarantine, failed or cancelled first."""
        ...

    @verb("worker", reads=True)
    def node_result(self, job_id: int, name: str) -> NodeResult | None:
        """Return the result of a node by its name, for another node of the same graph; None if there is no such node,
        or if the job is no node."""
        ...
