"""graph_start: a graph and all its nodes, in one transaction."""

from __future__ import annotations

from msgspec.structs import replace

from detent.errors import IdConflict, KeyConflict
from detent.model.graph_records import GraphRow, GraphStarted
from detent.model.workflow_records import NEVER
from detent.store.contract import Store
from tests.contract.graphs.sample_graphs import DIAMOND, graph, new_graph
from tests.contract.jobs.sample_jobs import enqueue, job
from tests.contract.refusals import Untouched


def test_nodes_are_children_and_start_in_their_order(store: Store) -> None:
    """Only nodes without others before them can be claimed; the graph itself cannot."""
    one = graph(store)
    assert [job(store, job_id).parent_id for job_id in one.ids.values()] == [one.id] * 4
    assert (job(store, one.id).task, job(store, one.id).due_at) == ("detent.graph", NEVER)
    assert [node.blocked for node in one.nodes().values()] == [0, 1, 1, 2]
    assert one.claimed() == "a"
    one.succeed("a")
    assert one.claimed() == "b c"
    one.succeed("b")
    assert one.claimed() == ""
    one.succeed("c")
    assert one.claimed() == "d"
    assert one.state() == "pending"
    one.succeed("d")
    assert (one.state(), one.error(), job(store, one.id).attempt) == ("succeeded", None, 0)
    assert store.graph_get([one.id, one.ids["a"]]) == [
        GraphRow(job_id=one.id, name="nightly", total=4, succeeded=4, failed=0),
        None,
    ]


def test_the_end_of_many_nodes_in_one_call(store: Store) -> None:
    """Nodes of two graphs end together, and all that follow start."""
    first, second = graph(store), graph(store, {"x": "", "y": "x", "z": "~x"})
    first.ids |= second.ids
    assert first.claimed() == "a x"
    first.succeed("x", "a")
    assert first.claimed() == "b c y z"
    first.succeed("y", "c", "z", "b")
    assert (first.claimed(), first.state(), second.state()) == ("d", "pending", "succeeded")


def test_the_same_key_is_the_same_graph(store: Store, untouched: Untouched) -> None:
    first = new_graph(store, DIAMOND, key="2026-11-18")
    assert store.graph_start(first) == GraphStarted(first.job.id, True)
    again, other = new_graph(store, DIAMOND, key="2026-11-18"), new_graph(store, {"a": ""}, key="2026-11-18")
    with untouched():
        assert store.graph_start(first) == GraphStarted(first.job.id, False)
        assert store.graph_start(again) == GraphStarted(first.job.id, False)
        refused = store.graph_start(other)
    assert isinstance(refused, KeyConflict)
    assert refused.job_id == first.job.id


def test_an_id_that_is_taken_is_refused(store: Store, untouched: Untouched) -> None:
    taken = enqueue(store)
    item = new_graph(store, {"a": ""})
    with untouched():
        answer = store.graph_start(replace(item, job=replace(item.job, id=taken)))
    assert isinstance(answer, IdConflict)
