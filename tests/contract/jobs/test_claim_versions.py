"""job_claim: a workflow that has recorded something goes only to those who can continue its version."""

from __future__ import annotations

from typing import Any

import pytest

from detent.errors import DetentError
from detent.model.limit_records import NewLimit
from detent.model.records import Claimed
from detent.model.workflow_records import NewStep
from detent.store.contract import Store
from detent.testing.stores import StoreClock
from tests.contract.jobs.sample_jobs import abort, claim, claim_one, enqueue, job

TASK = "mail.send"
OLD: dict[str, list[int]] = {TASK: [1]}
NEW: dict[str, list[int]] = {TASK: [2]}


def begun(store: Store, version: int = 1, **overrides: Any) -> Claimed:
    """A workflow that has recorded a step under this version, in its first attempt."""
    job_id = enqueue(store, **overrides)
    held = claim_one(store, versions={})
    step = NewStep(
        job_id=job_id, attempt=1, version=version, generation=1, path="charge", seq=1, kind="call", value="1"
    )
    (answer,) = store.step_record([step])
    assert not isinstance(answer, DetentError), answer
    return held


def returned(store: Store, version: int = 1, **overrides: Any) -> int:
    """A workflow that has begun under this version, and is ready for its next attempt."""
    held = begun(store, version, **overrides)
    abort(store, held)
    return held.job_id


def claimed_ids(store: Store, **options: Any) -> list[int]:
    return [held.job_id for held in claim(store, **options)]


def test_only_those_who_can_continue_its_version_get_it(store: Store) -> None:
    """F12: a version that is not among those of its task is not claimed; nor is one of a task that is not named."""
    job_id = returned(store)
    others: list[dict[str, list[int]]] = [NEW, {}, {TASK: []}, {"another": [1]}, {"another": [1], TASK: [2, 3]}]
    for versions in others:
        assert claim(store, versions=versions) == []
    assert job(store, job_id).attempt == 1
    assert claim_one(store, versions={"another": [9], TASK: [2, 1]}).job_id == job_id


def test_who_names_no_versions_gets_any(store: Store) -> None:
    made = [returned(store, version) for version in (1, 2, 1_000_000)]
    assert claimed_ids(store, versions=None) == made


def test_what_has_recorded_nothing_goes_to_everybody(store: Store) -> None:
    """A new job, and one that failed before its first record."""
    failed = enqueue(store)
    abort(store, claim_one(store))
    new = enqueue(store)
    assert claimed_ids(store, versions={}) == [failed, new]


def test_versions_of_one_tenant_stand_in_one_line(store: Store, clock: StoreClock) -> None:
    """Of the versions that a claim may take, priority and age decide, as among other jobs."""
    made = []
    for version in (2, 1, 3, 2):
        made.append(returned(store, version))
        clock.advance(1)
    urgent = returned(store, 2, priority=5)
    last = enqueue(store)
    assert claimed_ids(store, versions={TASK: [1, 2]}) == [urgent, made[0], made[1], made[3], last]
    assert claimed_ids(store, versions={TASK: [3]}) == [made[2]]


def after_a_wait(store: Store, clock: StoreClock) -> int:
    held = begun(store)
    abort(store, held, delay=60.0)
    clock.advance(61)
    assert store.job_promote(100) == 1
    return held.job_id


def after_its_lease_expired(store: Store, clock: StoreClock) -> int:
    held = begun(store)
    clock.advance(31)
    assert store.lease_reap(100).aborted == (held.job_id,)
    return held.job_id


def after_a_retry(store: Store, _: StoreClock) -> int:
    held = begun(store)
    abort(store, held, fatal=True)
    store.job_retry([held.job_id], "ana")
    return held.job_id


def after_it_was_settled(store: Store, _: StoreClock) -> int:
    held = begun(store, idempotent=False)
    store.job_start([(held.job_id, held.attempt)])
    abort(store, held, "crashed")
    store.effect_settle(held.job_id, False, "ana", "it did not happen")
    return held.job_id


def after_a_move(store: Store, _: StoreClock) -> int:
    job_id = returned(store)
    store.job_move([job_id], "elsewhere", 7, "ana")
    return job_id


@pytest.mark.parametrize(
    "way", [after_a_wait, after_its_lease_expired, after_a_retry, after_it_was_settled, after_a_move]
)
def test_it_keeps_its_version_on_every_way_back(store: Store, clock: StoreClock, way: Any) -> None:
    job_id = way(store, clock)
    assert claim(store, versions=NEW) == []
    assert claim_one(store, versions=OLD).job_id == job_id
    assert store.verify() == []


def test_it_leaves_the_queue_like_any_other(store: Store) -> None:
    """Cancelled while it is ready, and while it waits for its time."""
    for delay in (0.0, 60.0):
        held = begun(store)
        abort(store, held, delay=delay)
        store.job_cancel([held.job_id], "ana")
        assert job(store, held.job_id).state == "cancelled"
    assert claim(store) == []
    assert store.verify() == []


def test_claims_of_any_kind_know_versions(store: Store) -> None:
    """One by one, prepared ahead, of some tenants, and under a limit."""
    terms: dict[str, Any] = {"worker": "ana", "queues": None, "tasks": [TASK], "limit": 10, "lease": 30.0}

    def each(versions: Any) -> list[int]:
        claimed = store.job_claim_each([], lease_id=store.ids_reserve(1), versions=versions, **terms)
        return [held.job_id for held in claimed.jobs]

    def ahead(versions: Any) -> list[int]:
        claim_now = store.claim_ahead(lease_id=store.ids_reserve(1), versions=versions, **terms)
        return [held.job_id for held in claim_now()]

    def of_tenant(versions: Any) -> list[int]:
        return claimed_ids(store, tenants=["acme"], versions=versions)

    def limited(versions: Any) -> list[int]:
        store.limit_put(NewLimit(key=TASK, concurrency_max=50, tasks=(TASK,)))
        return claimed_ids(store, versions=versions)

    for way in (each, ahead, of_tenant, limited):
        job_id = returned(store, tenant="acme")
        assert (way(NEW), way(OLD)) == ([], [job_id]), way
