"""Graphs for tests: nodes by name, and short calls that take one through its life."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from detent.model.graph_records import After, GraphStarted, NewGraph, NewNode, NodeRow
from detent.model.json_codec import fingerprint
from detent.model.records import Finish, Finished
from detent.store.contract import Verbs
from tests.contract.jobs.sample_jobs import abort, claim, commit, new_job

__all__ = ["DIAMOND", "Graph", "graph", "new_graph", "start"]

DIAMOND = {"a": "", "b": "a", "c": "a", "d": "b c"}
"""Each node by name, with those that it needs; `~b` only has to end."""


def new_graph(store: Verbs, shape: Mapping[str, str], *, key: str | None = None, **overrides: Any) -> NewGraph:
    """A graph of that shape. Payloads are the names of the nodes."""
    ids = {name: store.ids_reserve(1) for name in ("", *shape)}
    nodes = tuple(
        NewNode(
            name,
            new_job(store, id=ids[name], payload=f'"{name}"', **overrides),
            tuple(After(ids[one.strip("~")], "end" if one[0] == "~" else "success") for one in before.split()),
        )
        for name, before in shape.items()
    )
    told = fingerprint("detent.graph", f'"{dict(shape)}"')
    job = new_job(store, id=ids[""], task="detent.graph", payload="{}", key=key, fingerprint=told)
    return NewGraph("nightly", job, nodes)


class Graph:
    """A graph that was started."""

    def __init__(self, store: Verbs, item: NewGraph) -> None:
        self.store = store
        self.id = item.job.id
        self.ids = {node.name: node.job.id for node in item.nodes}
        self._held: dict[int, Any] = {}

    def nodes(self) -> dict[str, NodeRow]:
        """Its nodes by name."""
        return {node.name: node for node in self.store.node_list(self.id)}

    def states(self) -> str:
        """The states of its nodes, in order: `succeeded running pending`."""
        return " ".join(node.state for node in self.nodes().values())

    def claimed(self) -> str:
        """Claim what can be claimed; the names, in order."""
        names = {job_id: name for name, job_id in self.ids.items()}
        new = {one.job_id: one for one in claim(self.store)}
        self._held |= new
        return " ".join(sorted(names[job_id] for job_id in new))

    def succeed(self, *names: str) -> None:
        """End attempts as done, all in one call."""
        held = [self._held[self.ids[name]] for name in names]
        answers = self.store.job_finish([Finish(one.job_id, one.attempt, '"did it"') for one in held], "ana")
        assert all(isinstance(one, Finished) for one in answers), answers

    def commit(self, name: str) -> None:
        """Mark an attempt as committed."""
        self.store.job_commit(commit(self._held[self.ids[name]]))

    def fail(self, name: str) -> None:
        """End an attempt for good."""
        abort(self.store, self._held[self.ids[name]], outcome="error", error="boom", fatal=True)

    def state(self) -> str:
        """The state of the graph."""
        (row,) = self.store.job_get([self.id])
        assert row is not None
        return row.state

    def error(self) -> str | None:
        """The error of the graph."""
        (row,) = self.store.job_get([self.id])
        assert row is not None
        return row.error

    def retry(self, *names: str) -> None:
        """Retry nodes; without names the graph."""
        answers = self.store.job_retry([self.ids[name] for name in names] or [self.id], "ana")
        assert all(getattr(one, "changed", False) for one in answers), answers

    def cancel(self, *names: str) -> None:
        """Cancel nodes; without names the graph."""
        self.store.job_cancel([self.ids[name] for name in names] or [self.id], "ana", "wrong day")


def start(store: Verbs, item: NewGraph) -> Graph:
    """Start a graph that must be new."""
    assert store.graph_start(item) == GraphStarted(item.job.id, True)
    return Graph(store, item)


def graph(store: Verbs, shape: Mapping[str, str] = DIAMOND, **overrides: Any) -> Graph:
    """A new graph of that shape."""
    return start(store, new_graph(store, shape, **overrides))
