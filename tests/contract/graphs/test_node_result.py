"""node_result: what another node of the same graph has returned."""

from __future__ import annotations

from detent.store.contract import Store
from tests.contract.graphs.sample_graphs import graph


def test_nodes_read_results_of_their_graph(store: Store) -> None:
    one, other = graph(store, {"a": "", "b": "a"}), graph(store, {"x": ""})
    one.ids |= other.ids
    one.claimed()
    one.succeed("a")
    found = store.node_result(one.ids["b"], "a")
    assert found is not None
    assert (found.job_id, found.state, found.result, found.dropped_at) == (one.ids["a"], "succeeded", '"did it"', None)
    assert store.node_result(one.ids["b"], "x") is None
    assert store.node_result(one.id, "a") is None
