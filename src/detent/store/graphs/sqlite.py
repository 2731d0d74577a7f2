"""Graphs on SQLite. What follows from the end of a node is in the triggers."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from detent.errors import DetentError
from detent.model.clock import from_micros
from detent.model.graph_records import GRAPH_TASK, GraphRow, GraphStarted, NewGraph, NodeResult, NodeRow
from detent.model.records import Enqueued
from detent.model.workflow_records import NEVER
from detent.store.jobs.sqlite_endings import SqliteEndings
from detent.store.sqlite.driver.executor import Row
from detent.store.sqlite.verb_base import Insert, fields_named, ids_json

__all__ = ["SqliteGraphs"]

_NEW_GRAPH = "INSERT INTO detent_graph (job_id, name, total) VALUES (?, ?, ?)"
_NEW_NODES = Insert("detent_graph_node", "graph_id, name, job_id, blocked")
_NEW_AFTER = Insert("detent_job_after", "job_id, after_id, kind")
_GRAPHS = f"""
SELECT {", ".join(GraphRow.__struct_fields__)} FROM detent_graph WHERE job_id IN (SELECT value FROM json_each(?))
"""
_ROW = "n.graph_id, n.name, n.job_id, j.task, j.state, j.error, n.blocked, n.lost_by"
_NODES = f"""
SELECT {_ROW} FROM detent_job j JOIN detent_graph_node n ON n.job_id = j.id
 WHERE j.parent_id = ? AND j.id > ? ORDER BY j.id LIMIT ?
"""
_BLOCKERS = f"""
SELECT DISTINCT {_ROW}
  FROM detent_job_after a JOIN detent_graph_node n ON n.job_id = a.after_id JOIN detent_job j ON j.id = n.job_id
 WHERE a.job_id = ? AND NOT a.met
 ORDER BY j.state NOT IN ('quarantined', 'failed', 'cancelled'), j.id LIMIT ?
"""
_RESULT = """
SELECT j.id, j.state, j.result, j.result_dropped_at
  FROM detent_graph_node own
  JOIN detent_graph_node n ON n.graph_id = own.graph_id AND n.name = ?
  JOIN detent_job j ON j.id = n.job_id
 WHERE own.job_id = ?
"""


class SqliteGraphs(SqliteEndings):
    """The verbs of graphs."""

    def graph_start(self, item: NewGraph) -> GraphStarted | DetentError:
        """The job of the graph first: its key says whether it was started before."""
        graph = replace(item.job, task=GRAPH_TASK, due_at=NEVER)
        (answer,) = self.job_enqueue([graph])
        if isinstance(answer, DetentError) or not answer.created:
            return answer if isinstance(answer, DetentError) else GraphStarted(answer.job_id, False)
        jobs = [
            replace(node.job, parent_id=graph.id, group=0, due_at=NEVER if node.after else node.job.due_at)
            for node in item.nodes
        ]
        for answer in self.job_enqueue(jobs):
            # Ids are reserved and nodes have no keys, so only a mistake of the caller gets here; nothing is kept of it.
            if not isinstance(answer, Enqueued):
                raise answer
        self._db.change(_NEW_GRAPH, (graph.id, item.name, len(item.nodes)))
        _NEW_NODES.run(self._db, [(graph.id, node.name, node.job.id, len(node.after)) for node in item.nodes])
        after = [(node.job.id, one.job_id, one.kind) for node in item.nodes for one in node.after]
        if after:
            _NEW_AFTER.run(self._db, after)
        return GraphStarted(graph.id, True)

    def graph_get(self, ids: Sequence[int]) -> list[GraphRow | None]:
        rows = self._db.rows(_GRAPHS, (ids_json(ids),))
        found = {row[0]: GraphRow(**fields_named(GraphRow.__struct_fields__, row)) for row in rows}
        return [found.get(job_id) for job_id in ids]

    def node_list(self, graph_id: int, *, after_id: int = 0, limit: int = 1000) -> list[NodeRow]:
        return [_node(row) for row in self._db.rows(_NODES, (graph_id, after_id, limit))]

    def node_blockers(self, job_id: int, *, limit: int = 100) -> list[NodeRow]:
        return [_node(row) for row in self._db.rows(_BLOCKERS, (job_id, limit))]

    def node_result(self, job_id: int, name: str) -> NodeResult | None:
        for found, state, result, dropped_at in self._db.rows(_RESULT, (name, job_id)):
            return NodeResult(found, state, result, None if dropped_at is None else from_micros(dropped_at))
        return None


def _node(row: Row) -> NodeRow:
    return NodeRow(**fields_named(NodeRow.__struct_fields__, row))
