"""graph_get: graphs by their jobs."""

from __future__ import annotations

from detent.store.contract import Store
from tests.contract.graphs.sample_graphs import graph


def test_counts_follow_the_nodes(store: Store) -> None:
    one = graph(store, {"a": "", "b": "", "c": "a", "d": "c"}, dead_letter=False)
    one.claimed()
    one.succeed("b")
    one.fail("a")
    found, none = store.graph_get([one.id, one.ids["a"]])
    assert found is not None
    assert (found.name, found.total, found.succeeded, found.failed) == ("nightly", 4, 1, 3)
    assert none is None
