"""How nodes end, and what follows: later nodes start, wait or are cancelled, and the graph ends with the last."""

from __future__ import annotations

import pytest

from detent.model.records import Cancelled
from detent.model.workflow_records import NEVER
from detent.store.contract import Store
from detent.testing.stores import StoreClock
from tests.contract.graphs.sample_graphs import DIAMOND, graph
from tests.contract.jobs.sample_jobs import LEASE, job

NIGHTLY = {"orders": "", "users": "", "facts": "orders users", "publish": "facts", "report": "~facts"}


def test_a_node_in_quarantine_keeps_the_graph_waiting_and_a_retry_lets_it_go_on(store: Store) -> None:
    one = graph(store, NIGHTLY)
    assert one.claimed() == "orders users"
    one.succeed("users")
    one.fail("orders")
    assert one.states() == "quarantined succeeded pending pending pending"
    assert (one.claimed(), one.state()) == ("", "pending")
    one.retry("orders")
    assert one.claimed() == "orders"
    one.succeed("orders")
    assert one.claimed() == "facts"
    one.succeed("facts")
    assert one.claimed() == "publish report"
    one.succeed("publish", "report")
    assert one.state() == "succeeded"


def test_a_node_that_failed_for_good_cancels_what_needs_it(store: Store) -> None:
    """`report` only waits for the end of `facts`, which was cancelled: it runs. Then the graph fails, and says why."""
    one = graph(store, NIGHTLY, dead_letter=False)
    one.claimed()
    one.succeed("users")
    one.fail("orders")
    assert one.states() == "failed succeeded cancelled cancelled pending"
    orders = one.ids["orders"]
    for name in ("facts", "publish"):
        (line,) = [line for line in store.transitions("job", str(one.ids[name])) if line.to_state == "cancelled"]
        assert (line.actor, line.reason) == ("system", f"node `orders` (job {orders}), which it needs, is failed")
        assert one.nodes()[name].lost_by == orders
    assert (one.claimed(), one.state()) == ("report", "pending")
    one.succeed("report")
    assert (one.state(), one.error()) == ("failed", f"node `orders` (job {orders}) is failed")


def test_a_failed_graph_goes_on_node_by_node(store: Store) -> None:
    """The retry of the node that failed, then of the nodes that were cancelled: in this order, and in the other."""
    for order in (("a", "b", "d"), ("d", "b", "a")):
        one = graph(store, {"a": "", "b": "a", "d": "b"}, dead_letter=False)
        one.claimed()
        one.fail("a")
        assert (one.states(), one.state()) == ("failed cancelled cancelled", "failed")
        one.retry(order[0])
        assert (one.state(), one.error()) == ("pending", None)
        one.retry(*order[1:])
        assert one.claimed() == "a"
        one.succeed("a")
        assert one.claimed() == "b"
        one.succeed("b")
        assert one.claimed() == "d"
        one.succeed("d")
        assert one.state() == "succeeded"


def test_a_node_that_is_retried_after_its_predecessor_succeeded_starts_at_once(store: Store) -> None:
    one = graph(store, {"a": "", "b": "a"}, dead_letter=False)
    one.claimed()
    one.fail("a")
    one.retry("a")
    one.claimed()
    one.succeed("a")
    assert (one.states(), one.state()) == ("succeeded cancelled", "failed")
    one.retry("b")
    assert (one.claimed(), one.state()) == ("b", "pending")
    one.succeed("b")
    assert one.state() == "succeeded"


def test_the_retry_of_a_graph_retries_what_has_not_succeeded(store: Store) -> None:
    one = graph(store, NIGHTLY, dead_letter=False)
    one.claimed()
    one.succeed("users")
    one.fail("orders")
    one.claimed()
    one.fail("report")
    assert (one.states(), one.state()) == ("failed succeeded cancelled cancelled failed", "failed")
    one.retry()
    assert one.states() == "pending succeeded pending pending pending"
    assert one.claimed() == "orders report"
    one.succeed("orders", "report")
    assert one.claimed() == "facts"
    one.succeed("facts")
    assert one.claimed() == "publish"
    one.succeed("publish")
    assert one.state() == "succeeded"


def test_a_cancelled_graph_cancels_its_nodes_and_a_retry_starts_it_again(store: Store) -> None:
    """A running node is asked to stop. Afterwards nodes start in their order again."""
    one = graph(store, NIGHTLY)
    assert one.claimed() == "orders users"
    one.succeed("users")
    one.cancel()
    assert (one.states(), one.state()) == ("running succeeded cancelled cancelled cancelled", "cancelled")
    assert job(store, one.ids["orders"]).cancel_requested_by == "ana"
    assert store.transitions("job", str(one.ids["facts"]))[-1].reason == f"with job {one.id}: wrong day"
    one.fail("orders")
    assert (one.states(), one.state()) == ("cancelled succeeded cancelled cancelled cancelled", "cancelled")
    one.retry()
    assert (one.claimed(), one.state()) == ("orders", "pending")
    one.succeed("orders")
    assert one.claimed() == "facts"
    one.succeed("facts")
    assert one.claimed() == "publish report"
    one.succeed("publish", "report")
    assert one.state() == "succeeded"


def test_a_discarded_node_is_a_node_that_failed_for_good(store: Store) -> None:
    one = graph(store, DIAMOND)
    one.claimed()
    one.fail("a")
    store.job_discard([one.ids["a"]], "ana", "not worth it")
    assert (one.states(), one.state()) == ("cancelled cancelled cancelled cancelled", "failed")
    assert one.error() == f"node `a` (job {one.ids['a']}) is cancelled"


def test_a_node_that_is_declared_done_lets_the_graph_go_on(store: Store) -> None:
    one = graph(store, {"a": "", "b": "a"})
    one.claimed()
    one.fail("a")
    store.job_force(one.ids["a"], "succeeded", "ana", "done by hand")
    assert one.claimed() == "b"


def test_a_blocked_node_that_is_cancelled_ends_the_branch(store: Store) -> None:
    one = graph(store, {"a": "", "b": "a", "c": "b"})
    (answer,) = store.job_cancel([one.ids["b"]], "ana")
    assert answer == Cancelled(one.ids["b"], "cancelled")
    assert one.states() == "pending cancelled cancelled"
    assert one.claimed() == "a"
    one.succeed("a")
    assert (one.state(), one.error()) == ("failed", f"node `b` (job {one.ids['b']}) is cancelled")


def test_a_long_chain_is_cancelled_at_once(store: Store) -> None:
    """Deeper than any stack of triggers."""
    shape = {f"n{n}": f"n{n - 1}" if n else "" for n in range(1500)}
    one = graph(store, shape, dead_letter=False)
    one.claimed()
    one.fail("n0")
    (row,) = store.graph_get([one.id])
    assert row is not None
    assert (row.succeeded, row.failed, one.state()) == (0, 1500, "failed")


@pytest.mark.parametrize("order", ["ab", "ba"])
def test_two_nodes_before_one(store: Store, order: str) -> None:
    one = graph(store, {"a": "", "b": "", "c": "a ~b"})
    one.claimed()
    for name in order:
        assert one.claimed() == ""
        one.succeed(name)
    assert one.claimed() == "c"


def test_the_reaper_counts_like_a_worker(store: Store, clock: StoreClock) -> None:
    """A node whose worker has died is tried again; one that had committed succeeds, and the next one starts."""
    one = graph(store, {"a": "", "b": "", "c": "a", "d": "b"})
    assert one.claimed() == "a b"
    assert job(store, one.ids["c"]).due_at == NEVER
    one.commit("b")
    clock.advance(LEASE)
    store.lease_reap(10)
    assert one.states() == "pending succeeded pending pending"
    assert one.claimed() == "a d"
    one.succeed("a", "d")
    assert one.claimed() == "c"


def test_nodes_are_kept_as_long_as_their_graph(store: Store, clock: StoreClock) -> None:
    """Those that ended long ago are still read by later ones. Then the graph goes first, its nodes after it."""
    one = graph(store, {"a": "", "b": "a"})
    one.claimed()
    one.succeed("a")
    clock.advance(86_400)
    assert store.job_prune(clock.now(), None, 100, "ana").jobs == 0
    one.claimed()
    one.succeed("b")
    clock.advance(86_400)
    assert store.job_prune(clock.now(), None, 100, "ana").jobs == 1
    assert (store.graph_get([one.id]), store.job_get([one.id])) == ([None], [None])
    assert store.job_prune(clock.now(), None, 100, "ana").jobs == 2
