"""Graphs on PostgreSQL. What follows from the end of a node is in the functions and triggers."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from detent.errors import DetentError
from detent.model.graph_records import GRAPH_TASK, GraphRow, GraphStarted, NewGraph, NodeResult, NodeRow
from detent.model.records import Enqueued
from detent.model.workflow_records import NEVER
from detent.store.jobs.postgres_enqueue import job_enqueue
from detent.store.postgres.driver.session import Session
from detent.store.postgres.statement import Row, Statement, named, numbers, texts
from detent.store.postgres.verb_base import VerbBase, runs

__all__ = ["PostgresGraphs"]

_START = """
SELECT detent.graph_start_v1(%s::bigint, %s::text, %s::text[], %s::bigint[], %s::integer[], %s::bigint[], %s::bigint[],
  %s::text[])
"""
_RESULT = NodeResult.__struct_fields__
_GRAPH = ", ".join(GraphRow.__struct_fields__)
_NODE = ", ".join(NodeRow.__struct_fields__)


def graph_get(ids: Sequence[int]) -> Statement[list[GraphRow | None]]:
    def decode(rows: Sequence[Row]) -> list[GraphRow | None]:
        found = {row[0]: GraphRow(**named(GraphRow.__struct_fields__, row)) for row in rows}
        return [found.get(job_id) for job_id in ids]

    return Statement(f"SELECT {_GRAPH} FROM detent.graph_get_v1(%s::bigint[])", (numbers(ids),), decode, writes=False)


def node_list(graph_id: int, *, after_id: int = 0, limit: int = 1000) -> Statement[list[NodeRow]]:
    sql = f"SELECT {_NODE} FROM detent.node_list_v1(%s::bigint, %s::bigint, %s::integer)"
    return Statement(sql, (graph_id, after_id, limit), _nodes, writes=False)


def node_blockers(job_id: int, *, limit: int = 100) -> Statement[list[NodeRow]]:
    sql = f"SELECT {_NODE} FROM detent.node_blockers_v1(%s::bigint, %s::integer)"
    return Statement(sql, (job_id, limit), _nodes, writes=False)


def node_result(job_id: int, name: str) -> Statement[NodeResult | None]:
    sql = "SELECT job_id, state, result, dropped_at FROM detent.node_result_v1(%s::bigint, %s::text)"
    return Statement(
        sql, (job_id, name), lambda rows: NodeResult(**named(_RESULT, rows[0])) if rows else None, writes=False
    )


def _nodes(rows: Sequence[Row]) -> list[NodeRow]:
    return [NodeRow(**named(NodeRow.__struct_fields__, row)) for row in rows]


def _graph_rows(item: NewGraph) -> Statement[None]:
    after = [(node.job.id, one.job_id, one.kind) for node in item.nodes for one in node.after]
    params = (
        *(item.job.id, item.name, texts([node.name for node in item.nodes])),
        *(numbers([node.job.id for node in item.nodes]), numbers([len(node.after) for node in item.nodes])),
        *(numbers([one[0] for one in after]), numbers([one[1] for one in after]), texts([one[2] for one in after])),
    )
    return Statement(_START, params, lambda rows: None)


class PostgresGraphs(VerbBase):
    """The verbs of graphs."""

    graph_get = runs(graph_get)
    node_list = runs(node_list)
    node_blockers = runs(node_blockers)
    node_result = runs(node_result)

    def graph_start(self, item: NewGraph) -> GraphStarted | DetentError:
        """The job of the graph first: its key says whether it was started before."""
        graph = replace(item.job, task=GRAPH_TASK, due_at=NEVER)
        jobs = [
            replace(node.job, parent_id=graph.id, group=0, due_at=NEVER if node.after else node.job.due_at)
            for node in item.nodes
        ]
        if self._lanes is not None:
            self._lanes.ensure([graph, *jobs])

        def start(session: Session) -> GraphStarted | DetentError:
            (answer,) = session.run(job_enqueue([graph], notify=False))
            if isinstance(answer, DetentError) or not answer.created:
                return answer if isinstance(answer, DetentError) else GraphStarted(answer.job_id, False)
            for answer in session.run(job_enqueue(jobs, notify=self._callers_own)):
                # Ids are reserved and nodes have no keys, so only a mistake of the caller gets here; nothing is kept.
                if not isinstance(answer, Enqueued):
                    raise answer
            session.run(_graph_rows(item))
            return GraphStarted(graph.id, True)

        started = self._session.together(start)
        if self._bounds is not None:
            self._bounds.admit([node.job.id for node in item.nodes])
        return started
