"""ops_queue: the way in of ops runs."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from detent.errors import IdConflict, KeyConflict
from detent.model.ops_records import NewOpsRun
from detent.model.records import Enqueued
from detent.store.contract import Store
from detent.testing.stores import StoreClock
from tests.contract.jobs.sample_jobs import enqueue, job
from tests.contract.ops.sample_ops_runs import ops_run, queue_run
from tests.contract.refusals import Untouched, refused


def test_a_run_is_queued_as_a_job(store: Store, clock: StoreClock) -> None:
    """O1: one attempt, no dead letter, with all that it was asked for."""
    job_id = queue_run(store, metadata='{"trigger":"webhook"}', git_ref="feature/it's $(x)")
    row = ops_run(store, job_id)
    assert (row.project_id, row.env, row.git_sha, row.git_ref) == ("shop", "staging", "abc", "feature/it's $(x)")
    assert (row.state, row.metadata, row.finish_metadata) == ("queued", '{"trigger":"webhook"}', None)
    assert (row.queued_at, row.updated_at) == (clock.now(), clock.now())
    assert (row.claimed_by, row.started_at, row.begun_at, row.finished_at, row.outcome) == (None,) * 5
    of_job = job(store, job_id)
    assert (of_job.task, of_job.queue, of_job.attempts_max, of_job.dead_letter) == ("ops.run", "ops", 1, False)


def test_environments_are_made_once_for_each_project(store: Store) -> None:
    """O1: an unknown project or environment is made with its first run."""
    first, again = queue_run(store), queue_run(store)
    other, elsewhere = queue_run(store, env="production"), queue_run(store, project_id="blog")
    assert ops_run(store, first).env_id == ops_run(store, again).env_id
    assert len({ops_run(store, one).env_id for one in (first, other, elsewhere)}) == 3
    assert [(one.project_id, one.name) for one in store.ops_environments()] == [
        ("blog", "staging"),
        ("shop", "production"),
        ("shop", "staging"),
    ]


def test_the_same_key_is_the_same_run(store: Store, untouched: Untouched) -> None:
    """O1, J3: whatever its metadata; a delivery that comes twice queues one run."""
    job_id = queue_run(store, key="delivery:7")
    later = NewOpsRun(
        id=store.ids_reserve(1),
        nonce=2,
        project_id="shop",
        env="staging",
        git_sha="abc",
        git_ref="main",
        metadata='{"received":"later"}',
        key="delivery:7",
    )
    with untouched():
        assert store.ops_queue(later) == Enqueued(job_id, False)


@pytest.mark.parametrize("other", [{"env": "production"}, {"project_id": "blog"}, {"git_sha": "abd"}, {"git_ref": "x"}])
def test_the_same_key_for_something_else_is_refused(store: Store, untouched: Untouched, other: dict[str, Any]) -> None:
    """J3: and names the run that has it."""
    job_id = queue_run(store, key="k")
    fields = {"project_id": "shop", "env": "staging", "git_sha": "abc", "git_ref": "main", "key": "k"} | other
    item = NewOpsRun(id=store.ids_reserve(1), nonce=1, **fields)
    with untouched():
        refused(store.ops_queue(item), KeyConflict, key="k", job_id=job_id)


def test_an_id_that_is_taken_is_refused(store: Store, untouched: Untouched) -> None:
    """J2: the same request again is harmless, another one under its id is not."""
    item = NewOpsRun(id=enqueue(store), nonce=1, project_id="shop", env="staging")
    with untouched():
        refused(store.ops_queue(item), IdConflict, job_id=item.id)
    job_id = store.ids_reserve(1)
    again = NewOpsRun(id=job_id, nonce=1, project_id="shop", env="staging")
    assert store.ops_queue(again) == Enqueued(job_id, True)
    with untouched():
        assert store.ops_queue(again) == Enqueued(job_id, False)


def test_its_key_is_no_jobs_key(store: Store) -> None:
    """J3: runs and plain jobs have namespaces of their own."""
    job_id = enqueue(store, key="nightly", fingerprint="x")
    run_id = queue_run(store, key="nightly")
    assert (ops_run(store, run_id).key, job_id != run_id) == ("nightly", True)
    other = NewOpsRun(id=store.ids_reserve(1), nonce=3, project_id="shop", env="other", key="nightly")
    refused(store.ops_queue(other), KeyConflict, key="nightly", job_id=run_id)


def test_a_run_that_nobody_claims_in_time_is_cancelled(store: Store, clock: StoreClock) -> None:
    """J10, O2: also where scripts that ask for runs are all the workers there are."""
    late, soon = (queue_run(store, expires_at=clock.now() + timedelta(seconds=n)) for n in (600, 60))
    clock.advance(61)
    held = store.ops_claim(store.ids_reserve(1), "ana")
    assert held is not None
    assert held.job_id == late
    assert ops_run(store, soon).state == "cancelled"
