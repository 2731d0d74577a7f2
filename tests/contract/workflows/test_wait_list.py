"""wait_list: what parked workflows wait for."""

from __future__ import annotations

from datetime import timedelta

from detent.model.workflow_records import WaitPage
from detent.store.contract import Store
from detent.testing.stores import START
from tests.contract.workflows.sample_workflows import begin, children, park, parked_for_signal, send, signal


def test_of_one_job_for_one_signal_and_of_one_tenant(store: Store) -> None:
    one = parked_for_signal(store, "a", tenant="t1")
    two = parked_for_signal(store, "b", tenant="t2")
    three = parked_for_signal(store, "a", tenant="t2")
    assert [row.job_id for row in store.wait_list().rows] == [one, two, three]
    assert [row.job_id for row in store.wait_list(job_id=two).rows] == [two]
    assert [row.job_id for row in store.wait_list(signal="a").rows] == [one, three]
    assert [row.job_id for row in store.wait_list(signal="a", tenant="t2").rows] == [three]
    assert [row.job_id for row in store.wait_list(tenant="t2").rows] == [two, three]
    assert store.wait_list(job_id=two, signal="a").rows == []
    send(store, three, "a")
    assert [row.job_id for row in store.wait_list(signal="a").rows] == [one]


def test_a_group_of_children_is_no_signal(store: Store) -> None:
    held = begin(store)
    park(store, held, children("a"))
    assert store.wait_list(signal="a").rows == []


def test_pages(store: Store) -> None:
    held = begin(store)
    park(store, held, signal("a"), signal("b"), signal("c"))
    other = parked_for_signal(store)
    first = store.wait_list(limit=2)
    assert [(row.job_id, row.n) for row in first.rows] == [(held.job_id, 0), (held.job_id, 1)]
    assert first.next == (held.job_id, 1)
    rest = store.wait_list(after=first.next)
    assert [(row.job_id, row.n) for row in rest.rows] == [(held.job_id, 2), (other, 0)]
    assert rest.next is None


def test_a_portion_of_woken_workflows_says_where_to_continue(store: Store) -> None:
    woken = parked_for_signal(store)
    other = parked_for_signal(store)
    send(store, woken)
    first = store.wait_list(signal="go", limit=1)
    assert first == WaitPage([], (woken, 0))
    rest = store.wait_list(signal="go", after=(woken, 0))
    assert [row.job_id for row in rest.rows] == [other]


def test_the_tenant_is_that_of_the_job(store: Store) -> None:
    held = begin(store, tenant="t1")
    park(store, held, until=START + timedelta(days=1))
    (row,) = store.wait_list(tenant="t1").rows
    assert (row.job_id, row.kind, row.tenant) == (held.job_id, "time", "t1")
