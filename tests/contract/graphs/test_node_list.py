"""node_list: the nodes of a graph, in pages."""

from __future__ import annotations

from detent.store.contract import Store
from tests.contract.graphs.sample_graphs import graph


def test_nodes_come_by_id_in_pages(store: Store) -> None:
    one = graph(store)
    graph(store)
    first = store.node_list(one.id, limit=3)
    assert [node.name for node in first] == ["a", "b", "c"]
    assert [node.name for node in store.node_list(one.id, after_id=first[-1].job_id)] == ["d"]
    assert [(node.graph_id, node.task, node.state, node.blocked) for node in first][2] == (
        *(one.id, "mail.send", "pending", 1),
    )
    assert store.node_list(one.ids["a"]) == []
