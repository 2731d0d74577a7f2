"""The records of graphs: nodes that start when others have ended. Frozen, as in `records`."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from msgspec import Struct

from detent.model.records import NewJob

__all__ = ["GRAPH_TASK", "After", "GraphRow", "GraphStarted", "NewGraph", "NewNode", "NodeResult", "NodeRow"]

GRAPH_TASK = "detent.graph"
"""The task of the job that stands for a graph. No worker claims it: it ends with the last of its nodes."""


class After(Struct, frozen=True):
    """A node that has to end first: with success, or for good in any way (`end`)."""

    job_id: int
    kind: Literal["success", "end"]


class NewNode(Struct, frozen=True):
    """A node to add: its name within the graph, its job, and the nodes before it, whose ids are lower."""

    name: str
    job: NewJob
    after: tuple[After, ...] = ()


class NewGraph(Struct, frozen=True):
    """A graph to start: the job that stands for it, due never, and its nodes in the order of their ids."""

    name: str
    job: NewJob
    nodes: tuple[NewNode, ...]


class GraphStarted(Struct, frozen=True):
    """A graph. `created` is False if one with the same key was there before."""

    job_id: int
    created: bool


class GraphRow(Struct, frozen=True, kw_only=True):
    """A graph. `failed` counts nodes that are failed or cancelled; those in quarantine have not ended for good."""

    job_id: int
    name: str
    total: int
    succeeded: int
    failed: int


class NodeRow(Struct, frozen=True, kw_only=True):
    """A node of a graph. `blocked` counts what it still waits for. `lost_by` is the node whose end without success has
    cancelled it."""

    graph_id: int
    name: str
    job_id: int
    task: str
    state: str
    error: str | None
    blocked: int
    lost_by: int | None


class NodeResult(Struct, frozen=True):
    """The state of a node and, if it has succeeded, its result, or when that was dropped."""

    job_id: int
    state: str
    result: str | None
    dropped_at: datetime | None
