"""Why a graph, or a node of one, is in its state."""

from __future__ import annotations

from detent.errors import essence
from detent.model.graph_records import GRAPH_TASK, NodeRow
from detent.model.records import JobRow
from detent.store.contract import Verbs

__all__ = ["explain_graph", "explain_node"]


def explain_node(verbs: Verbs, row: JobRow) -> str | None:
    """Return for which nodes a pending job waits; None if it waits for none."""
    if row.parent_id is None:
        return None
    found = verbs.node_blockers(row.id, limit=2)
    if not found:
        return None
    nodes = [node for node in verbs.node_list(found[0].graph_id, after_id=row.id - 1, limit=1) if node.job_id == row.id]
    more = nodes[0].blocked - 1 if nodes else 0
    others = "" if more < 1 else " and for one more node" if more == 1 else f" and for {more} more nodes"
    return f"it waits for {_named(found[0])}{others}"


def explain_graph(verbs: Verbs, row: JobRow) -> str | None:
    """Return how far a graph is; None if the job is no graph, or was cancelled."""
    (graph,) = verbs.graph_get([row.id]) if row.task == GRAPH_TASK else (None,)
    if graph is None:
        return None
    match row.state:
        case "pending":
            told = f"it waits for its nodes: {graph.succeeded + graph.failed} of {graph.total} have ended"
            for job_id in verbs.child_list(row.id, state="quarantined", limit=1):
                told += "".join(f"; {_named(node)}" for node in verbs.node_list(row.id, after_id=job_id - 1, limit=1))
            return told
        case "succeeded":
            return f"all its {graph.total} nodes have succeeded" if graph.total > 1 else "its node has succeeded"
        case "failed":
            return f"it is failed: {row.error}; {graph.succeeded} of {graph.total} nodes have succeeded"
        case _:
            return None


def _named(node: NodeRow) -> str:
    said = f": {of}" if (of := essence(node.error)) else ""
    return f"node `{node.name}` (job {node.job_id}), which is {node.state}{said}"
