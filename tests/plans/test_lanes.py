"""What a claim costs does not depend on how many lanes there are.

The same calls are made on a record with some hundred lanes and on one with a hundred thousand. The work is counted:
instructions of SQLite's virtual machine, rows and index entries that PostgreSQL reads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from detent.model.limit_records import NewLimit
from detent.store.contract import Verbs
from detent.testing.stores import turnable_store
from tests.contract.jobs.sample_jobs import claim, enqueue
from tests.plans.many_lanes import add_lanes
from tests.plans.measured import work_of

SOME, MANY = 300, 100_000
TASK = "mail.send"


def claim_some(verbs: Verbs, _: Any) -> None:
    assert len(claim(verbs, limit=10)) == 10


def claim_each(verbs: Verbs, _: Any) -> None:
    terms: dict[str, Any] = {"worker": "ana", "queues": None, "tasks": [TASK], "limit": 10, "lease": 30.0}
    assert len(verbs.job_claim_each([], lease_id=verbs.ids_reserve(1), **terms).jobs) == 10


def claim_nothing(verbs: Verbs, _: Any) -> None:
    assert claim(verbs, tasks=["never.sent"]) == []
    assert claim(verbs, queues=["elsewhere"]) == []


def claim_of_one_tenant(verbs: Verbs, _: Any) -> None:
    assert len(claim(verbs, limit=10, tenants=["zoe"])) == 10


def claim_of_version(verbs: Verbs, _: Any) -> None:
    assert len(claim(verbs, limit=10, versions={TASK: [2], "another": [1]})) == 10


def claim_each_of_version(verbs: Verbs, _: Any) -> None:
    terms: dict[str, Any] = {"worker": "ana", "queues": None, "tasks": [TASK], "limit": 10, "lease": 30.0}
    assert len(verbs.job_claim_each([], lease_id=verbs.ids_reserve(1), versions={}, **terms).jobs) == 10


def claim_no_version(verbs: Verbs, _: Any) -> None:
    """Of a task of which only another version waits."""
    assert claim(verbs, queues=["elsewhere"], versions={TASK: [2]}) == []
    assert len(claim(verbs, limit=10, tenants=["zoe"], versions={TASK: [2]})) == 10


def send_more(verbs: Verbs, _: Any) -> None:
    enqueue(verbs, tenant="zoe")


def all_the_same(url: str, works: Sequence[Callable[[Verbs, Any], None]], **lanes: Any) -> None:
    add_lanes(url, SOME, **lanes)
    few = [work_of(url, work) for work in works]
    add_lanes(url, MANY, **lanes)
    for work, small in zip(works, few, strict=True):
        large = work_of(url, work)
        assert large <= 1.5 * small + 100, (work.__name__, small, large)


def filled(url: str, *, limited: bool = False) -> None:
    with turnable_store(url) as (store, _):
        if limited:
            store.limit_put(NewLimit(key=TASK, rate=1000, burst=1000, concurrency_max=50, tasks=(TASK,)))
        for _n in range(20):
            enqueue(store, tenant="zoe")


def test_lanes_that_are_empty_cost_nothing(store_url: str) -> None:
    """J4: a hundred thousand tenants have come and gone. No claim meets them, nor does an enqueue."""
    filled(store_url)
    works = [claim_some, claim_each, claim_nothing, claim_of_one_tenant, send_more]
    all_the_same(store_url, works, ready=False)


@pytest.mark.parametrize("place", ["unknown", "paused"])
def test_lanes_that_may_not_be_entered_cost_nothing(store_url: str, place: str) -> None:
    """J4, J12: a hundred thousand tenants wait for a task that this worker does not know, or in a paused queue."""
    filled(store_url)
    where = {"task": "nobody.knows"} if place == "unknown" else {"queue": "slow"}
    with turnable_store(store_url) as (store, _):
        store.queue_pause("slow", "ana")
    works = [claim_some, claim_each, claim_nothing, claim_of_one_tenant]
    all_the_same(store_url, works, ready=True, **where)


def test_lanes_of_another_version_cost_nothing(store_url: str) -> None:
    """A hundred thousand tenants wait for the worker that can continue the old version of a workflow."""
    filled(store_url)
    works = [claim_of_version, claim_each_of_version, claim_no_version]
    all_the_same(store_url, works, ready=True, version=1)
    with turnable_store(store_url) as (store, _):
        assert len(claim(store, limit=30, versions={TASK: [2]})) == 20
        assert len(claim(store, limit=30, versions={TASK: [1]})) == 30


def test_a_claim_of_many_tenants_costs_what_it_claims(store_url: str) -> None:
    """J4: a hundred thousand tenants have a job each; a claim looks at some of them."""
    filled(store_url)
    works = [claim_some, claim_each, claim_nothing, claim_of_one_tenant, send_more]
    all_the_same(store_url, works, ready=True)


def test_a_claim_under_many_limit_keys_costs_what_it_claims(store_url: str) -> None:
    """J12: a hundred thousand keys have a job each, and each has a limit of its own."""
    filled(store_url, limited=True)
    all_the_same(store_url, [claim_some, claim_each, claim_of_one_tenant], ready=True, keys=True)
