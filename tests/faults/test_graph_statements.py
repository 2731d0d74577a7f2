"""SIGKILL at every statement of whoever starts a graph, or ends a node: nothing of it, or all of it."""

from __future__ import annotations

import pytest

from detent.model.graph_records import GraphStarted
from detent.store.contract import Store
from prove.trap import killed_at
from tests.contract.batches.sample_batch_runs import broken
from tests.contract.graphs.sample_graphs import DIAMOND, Graph, graph, new_graph
from tests.faults.test_statements import die_everywhere


@pytest.mark.timeout(600)
def test_a_start_killed_anywhere_is_whole_or_not_there(store: Store, whole: bool) -> None:
    """J3, G7: no node can be claimed without its graph, and whoever starts it again gets one graph that runs."""

    def die(k: int, after: bool) -> bool:
        item = new_graph(store, DIAMOND, key=f"{k}/{after}")
        died = killed_at(k, lambda: store.graph_start(item), after=after)
        found = len(store.node_list(item.job.id))
        assert found in (0, 4), (k, after)
        assert store.job_get([item.job.id, *(node.job.id for node in item.nodes)]).count(None) == (0 if found else 5)
        one = Graph(store, item)
        assert one.claimed() == ("a" if found else ""), (k, after)
        assert store.graph_start(item) == GraphStarted(item.job.id, not found), (k, after)
        run_to_the_end(one)
        return died

    die_everywhere(whole, die, 2)
    assert broken(store) == []


@pytest.mark.timeout(600)
def test_the_end_of_a_node_killed_anywhere_is_whole_or_not_there(store: Store, whole: bool) -> None:
    """J3, G7: the node has ended and the next one can be claimed, or neither."""

    def die(k: int, after: bool) -> bool:
        one = graph(store)
        one.claimed()
        died = killed_at(k, lambda: one.succeed("a"), after=after)
        ended = one.nodes()["a"].state == "succeeded"
        assert [node.blocked for node in one.nodes().values()] == ([0, 0, 0, 2] if ended else [0, 1, 1, 2]), (k, after)
        assert one.claimed() == ("b c" if ended else ""), (k, after)
        run_to_the_end(one)
        return died

    die_everywhere(whole, die, 2)
    assert broken(store) == []


def run_to_the_end(one: Graph) -> None:
    """End every node that is or can be claimed, until the graph has succeeded."""
    for _ in range(4):
        one.claimed()
        one.succeed(*(node.name for node in one.nodes().values() if node.state == "running"))
    assert one.state() == "succeeded"
