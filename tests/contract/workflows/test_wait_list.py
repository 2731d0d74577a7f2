"""wait_list: what parked workflows wait for."""

from __future__ import annotations

from detent.store.contract import Store
from tests.contract.workflows.sample_workflows import begin, children, park, parked_for_signal, send, signal


def test_of_one_job_for_one_signal_and_of_one_tenant(store: Store) -> None:
    one = parked_for_signal(store, "a", tenant="t1")
    two = parked_for_signal(store, "b", tenant="t2")
    three = parked_for_signal(store, "a", tenant="t2")
    assert [row.job_id for row in store.wait_list()] == [one, two, three]
    assert [row.job_id for row in store.wait_list(job_id=two)] == [two]
    assert [row.job_id for row in store.wait_list(signal="a")] == [one, three]
    assert [row.job_id for row in store.wait_list(signal="a", tenant="t2")] == [three]
    assert [row.job_id for row in store.wait_list(tenant="t2")] == [two, three]
    assert store.wait_list(job_id=two, signal="a") == []
    send(store, three, "a")
    assert [row.job_id for row in store.wait_list(signal="a")] == [one]


def test_a_group_of_children_is_no_signal(store: Store) -> None:
    held = begin(store)
    park(store, held, children("a"))
    assert store.wait_list(signal="a") == []


def test_pages(store: Store) -> None:
    held = begin(store)
    park(store, held, signal("a"), signal("b"), signal("c"))
    other = parked_for_signal(store)
    first = store.wait_list(limit=2)
    assert [(row.job_id, row.n) for row in first] == [(held.job_id, 0), (held.job_id, 1)]
    rest = store.wait_list(after=(held.job_id, 1))
    assert [(row.job_id, row.n) for row in rest] == [(held.job_id, 2), (other, 0)]
