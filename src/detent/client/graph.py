"""Graphs: calls that start when others have ended, sent together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from msgspec.structs import replace

from detent.client.job import Job, Origin
from detent.client.job_verbs import unwrap
from detent.declare.enqueue import EnqueueOptions, checked, new_job
from detent.declare.task import Call
from detent.errors import InvalidInput, WrongPlace
from detent.model import json_codec
from detent.model.graph_records import GRAPH_TASK, After, NewGraph, NewNode
from detent.model.records import NewJob

if TYPE_CHECKING:
    from detent.client.engine import Engine

__all__ = ["Graph", "GraphPlan", "Node"]

T = TypeVar("T")

NODES_MAX = 10_000
AFTER_MAX = 100_000
"""Maximum number of nodes before others, all nodes of a graph together."""
BYTES_MAX = 64 * 1024 * 1024
"""Maximum size of all arguments of a graph together."""
_NAME_MAX = 200
_KEY = "detent:graph:"
_PAGE = 1000


class Node(Generic[T]):
    """A call in a graph. `id` is the id of its job, once the graph has started."""

    def __init__(self, plan: GraphPlan, name: str, call: Call[T], place: int) -> None:
        self.name = name
        self.call = call
        self.plan = plan
        self.place = place

    @property
    def id(self) -> int:
        """Id of the job. `WrongPlace` before the graph has started."""
        return self.plan.id_of(self)

    def __repr__(self) -> str:
        return f"<node {self.name!r} of graph {self.plan.name!r}>"


class GraphPlan:
    """What sync and async graphs have in common: nodes, and how they become jobs. Nothing is written before the start,
    and every mistake is found before it."""

    def __init__(self, engine: Engine, name: str, key: str | None, tenant: str) -> None:
        settings = engine.settings
        self.name = json_codec.text(name, field="graph", bytes_max=_NAME_MAX)
        self._key = None if key is None else json_codec.text(key, field="key", bytes_max=settings.key_max)
        self._tenant = json_codec.text(tenant, field="tenant", bytes_max=settings.name_max, allow_empty=True)
        self._engine = engine
        self._nodes: dict[str, Node[Any]] = {}
        self._before: list[tuple[tuple[int, ...], tuple[int, ...]]] = []
        self._jobs: list[NewJob] = []
        self._afters = 0
        self._bytes = 0
        self._item: NewGraph | None = None
        self._ids: dict[str, int] | None = None

    def add(
        self,
        call: Call[T],
        *,
        after: Sequence[Node[Any]] = (),
        after_end: Sequence[Node[Any]] = (),
        name: str | None = None,
    ) -> Node[T]:
        """Add a call. It starts when all nodes of `after` have succeeded, and all of `after_end` have ended for good in
        any way. If a node of `after` fails for good, it is cancelled. `name` is unique in the graph; default: the name
        of the task.

        `InvalidInput` for a name that is taken, for a node of another graph, and for a task that is unique.
        `WrongPlace` if the graph has started.
        """
        if self._item is not None:
            raise WrongPlace("graph.add()", f"graph {self.name!r} has started", "add all nodes before graph.start()")
        named = checked(call).task.name if name is None else name
        named = json_codec.text(named, field="name", bytes_max=_NAME_MAX)
        if named in self._nodes:
            raise InvalidInput("name", f"two nodes {named!r}", "one node for each name: graph.add(…, name=…)")
        if len(self._nodes) == NODES_MAX:
            raise InvalidInput("graph", f"more than {NODES_MAX:,} nodes", f"at most {NODES_MAX:,} nodes")
        job = new_job(call, EnqueueOptions(tenant=self._tenant), settings=self._engine.settings)
        if job.key is not None:
            raise InvalidInput(
                "call", f"task {call.task.name!r}, which is unique", "a task without unique=…; give the graph a key"
            )
        before = self._places(after, "after"), self._places(after_end, "after_end")
        self._afters += len(before[0]) + len(before[1])
        self._bytes += len(job.payload)
        if self._afters > AFTER_MAX:
            found = f"more than {AFTER_MAX:,} nodes before others"
            raise InvalidInput("after", found, f"at most {AFTER_MAX:,}; let nodes meet in one that does nothing")
        if self._bytes > BYTES_MAX:
            found = f"arguments of more than {BYTES_MAX:,} bytes"
            raise InvalidInput("graph", found, "store large values elsewhere, and pass their keys")
        node = Node(self, named, call, len(self._nodes))
        self._nodes[named] = node
        self._before.append(before)
        self._jobs.append(job)
        return node

    def _places(self, nodes: Sequence[Node[Any]], field: str) -> tuple[int, ...]:
        """Return the places of nodes that were added before, each once."""
        if isinstance(nodes, str | Node) or not isinstance(nodes, Sequence):
            raise InvalidInput(field, f"a value of type {type(nodes).__name__}", "a list of nodes of this graph")
        places: dict[int, None] = {}
        for node in nodes:
            if not isinstance(node, Node):
                raise InvalidInput(field, repr(node)[:80], "nodes, as graph.add() returns them")
            if node.plan is not self or self._nodes.get(node.name) is not node:
                found = f"node {node.name!r} of graph {node.plan.name!r}, which is another one"
                raise InvalidInput(field, found, "nodes of this graph")
            places[node.place] = None
        return tuple(places)

    def planned(self) -> NewGraph:
        """Return the graph with the ids of its jobs. The same for every call, so that a start can be repeated."""
        if not self._nodes:
            raise InvalidInput("graph", f"graph {self.name!r} without nodes", "at least one node: graph.add(…)")
        if self._item is None:
            engine = self._engine
            first, *ids = engine.ids.take(len(self._nodes) + 1)
            nonce = engine.ids.nonce()
            nodes = tuple(
                NewNode(
                    name,
                    replace(job, id=job_id, nonce=nonce),
                    (*(After(ids[n], "success") for n in needs), *(After(ids[n], "end") for n in ends)),
                )
                for name, job, job_id, (needs, ends) in zip(self._nodes, self._jobs, ids, self._before, strict=True)
            )
            self._item = NewGraph(self.name, self._job(first, nonce), nodes)
        return self._item

    def _job(self, job_id: int, nonce: int) -> NewJob:
        """Return the job that stands for the graph. Its fingerprint has all nodes, so that a key stands for them."""
        shape = [
            (name, node.call.fingerprint, *before)
            for (name, node), before in zip(self._nodes.items(), self._before, strict=True)
        ]
        payload = json_codec.encode({"name": self.name, "nodes": len(shape)}, field="graph", size_max=BYTES_MAX)
        return NewJob(
            id=job_id,
            task=GRAPH_TASK,
            payload=payload,
            nonce=nonce,
            fingerprint=json_codec.fingerprint(GRAPH_TASK, json_codec.encode(shape, field="graph", size_max=BYTES_MAX)),
            tenant=self._tenant,
            key=self._stored_key(),
            attempts_max=1,
            dead_letter=False,
        )

    def _stored_key(self) -> str | None:
        """Return the key of the job: one per graph and key, and never an ordinary one."""
        if self._key is None:
            return None
        key = f"{_KEY}{self.name}:{self._key}"
        return key if len(key.encode()) <= self._engine.settings.key_max else f"{_KEY}{json_codec.fingerprint(key, '')}"

    def started(self) -> tuple[int, bool]:
        """Write the graph; return its job, and whether it is new."""
        item = self.planned()
        answer = unwrap(self._engine.store.graph_start(item))
        if answer.job_id == item.job.id:
            self._ids = {node.name: node.job.id for node in item.nodes}
        else:
            self._ids = self._found(answer.job_id)
        return answer.job_id, answer.created

    def _found(self, graph_id: int) -> dict[str, int]:
        """Return the ids of the nodes of a graph that was started before."""
        ids: dict[str, int] = {}
        last = 0
        while page := self._engine.store.node_list(graph_id, after_id=last, limit=_PAGE):
            ids |= {node.name: node.job_id for node in page}
            last = page[-1].job_id
        return ids

    def id_of(self, node: Node[Any]) -> int:
        """Return the job of a node."""
        if self._ids is None:
            raise WrongPlace("node.id", f"before graph {self.name!r} has started", "call graph.start() first")
        return self._ids[node.name]


class Graph(GraphPlan):
    """A graph of calls, which `app.graph(name)` returns: add nodes, then start it."""

    def start(self) -> Job[None]:
        """Enqueue all nodes in one transaction and return the job that stands for the graph. It succeeds when all nodes
        have, and fails when the last one has ended and one of them has not succeeded. A node in quarantine keeps it
        waiting, since a retry may save it. To cancel or retry that job does so to its nodes.

        If a graph of this name and key was started before, its job is returned. `KeyConflict` if it had other nodes.
        """
        job_id, created = self.started()
        return Job(job_id, Origin(self._engine, lambda _: None, None), created, None)
