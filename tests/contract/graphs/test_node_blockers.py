"""node_blockers: the nodes for which a node waits."""

from __future__ import annotations

from detent.store.contract import Store
from tests.contract.graphs.sample_graphs import graph


def test_blockers_are_named_troubled_ones_first(store: Store) -> None:
    one = graph(store, {"a": "", "b": "", "c": "a b"})
    one.claimed()
    one.fail("b")
    found = store.node_blockers(one.ids["c"])
    assert [(node.name, node.state) for node in found] == [("b", "quarantined"), ("a", "running")]
    assert found[0].error == "boom"
    assert store.node_blockers(one.ids["a"]) == []
