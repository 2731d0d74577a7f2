"""ops_finish: how runs end; every move of their lifecycle, and every one that it does not have."""

from __future__ import annotations

from typing import get_args

import pytest

from detent.errors import InvalidTransition, LeaseLost, NotFound
from detent.lifecycle.library import OPS_RUN
from detent.model.ops_records import OpsEnd, OpsToken
from detent.model.records import Moved
from detent.model.service_records import NewOperation, OperationRow
from detent.store.contract import Store
from detent.testing.stores import StoreClock
from tests.contract.jobs.sample_jobs import enqueue, job, quarantined, state
from tests.contract.ops.sample_ops_runs import ops_run, queue_run, run_in
from tests.contract.refusals import Untouched, refused

ENDS: tuple[OpsEnd, ...] = get_args(OpsEnd)


@pytest.mark.parametrize("found", OPS_RUN.states)
def test_it_ends_as_the_lifecycle_says_and_not_otherwise(store: Store, untouched: Untouched, found: str) -> None:
    """L5, L2, O2: every pair is tried; the same state again changes nothing, and what is not declared is refused."""
    for end in ENDS:
        held = run_in(store, found)
        token = None if found == "queued" else held.token
        if (found, end) in OPS_RUN.pairs:
            assert store.ops_finish(held.job_id, end, "{}", "ana", token=token) == Moved(
                f"run-{held.job_id}", end, True
            )
            assert ops_run(store, held.job_id).state == end
            continue
        with untouched():
            answer = store.ops_finish(held.job_id, end, '{"other":1}', "ana", token=token)
        if found == end:
            assert answer == Moved(f"run-{held.job_id}", found, False)
        else:
            refused(
                answer,
                InvalidTransition,
                entity="ops_run",
                entity_id=f"run-{held.job_id}",
                from_state=found,
                to_state=end,
                allowed=OPS_RUN.allowed(found),
            )


def test_success_is_the_jobs_commit(store: Store, clock: StoreClock) -> None:
    """O2, G2: with what it was finished with beside what it was queued with."""
    queue_run(store, metadata='{"by":"ana"}')
    held = store.ops_claim(store.ids_reserve(1), "worker-001")
    assert held is not None
    store.ops_append(held.job_id, "info", "building")
    clock.advance(60)
    store.ops_finish(held.job_id, "success", '{"exit_code":0}', "worker-001", token=held.token)
    row = ops_run(store, held.job_id)
    assert (row.metadata, row.finish_metadata, row.outcome) == ('{"by":"ana"}', '{"exit_code":0}', "done")
    assert (row.finished_at, row.claimed_by) == (clock.now(), "worker-001")
    assert job(store, held.job_id).committed_at == clock.now()


def test_a_failure_keeps_its_error(store: Store) -> None:
    """O2: no retry and no dead letter."""
    held = run_in(store, "running")
    store.ops_finish(held.job_id, "failed", '{"error":"no Dockerfile"}', "ana", error="no Dockerfile", token=held.token)
    assert (job(store, held.job_id).state, job(store, held.job_id).error) == ("failed", "no Dockerfile")
    assert ops_run(store, held.job_id).outcome == "error"


@pytest.mark.parametrize("found", ["queued", "claimed", "running"])
def test_anybody_stops_it_at_once_and_is_on_record(store: Store, clock: StoreClock, found: str) -> None:
    """J8, O4: without a token; also where its lease has run out and nobody has taken it yet."""
    held = run_in(store, found)
    clock.advance(700)
    assert store.ops_finish(held.job_id, "cancelled", "{}", "user-456", "by hand") == Moved(
        f"run-{held.job_id}", "cancelled", True
    )
    row = ops_run(store, held.job_id)
    assert (row.state, row.cancelled_by, row.cancel_reason) == ("cancelled", "user-456", "by hand")
    assert row.finished_at == clock.now()
    refused(store.ops_append(held.job_id, "info", "hello"), LeaseLost, found="the job is cancelled")


def test_a_worker_that_slept_cannot_finish(store: Store, clock: StoreClock, untouched: Untouched) -> None:
    """C4, G3: its lease has run out, and then it was taken away; nothing is changed by it any more."""
    held = run_in(store, "running")
    clock.advance(600)
    for end in ENDS:
        with untouched():
            answer = store.ops_finish(held.job_id, end, "{}", "ana", token=held.token)
        refused(answer, LeaseLost, found="its lease has expired")
    store.lease_reap(100)
    with untouched():
        answer = store.ops_finish(held.job_id, "success", "{}", "ana", token=held.token)
    refused(answer, InvalidTransition, from_state="failed", to_state="success")


def test_a_token_of_another_claim_is_refused(store: Store, untouched: Untouched) -> None:
    """J5: also to say what is so already."""
    one, two = run_in(store, "running"), run_in(store, "success")
    for held, token in ((one, two.token), (one, OpsToken(2, one.token.lease_id)), (two, one.token)):
        with untouched():
            answer = store.ops_finish(held.job_id, "success", "{}", "ana", token=token)
        refused(answer, LeaseLost, found="another claim has it")


def test_what_is_no_run_is_not_found(store: Store, untouched: Untouched) -> None:
    job_id = enqueue(store)
    for wrong in (job_id, 999_999):
        with untouched():
            refused(store.ops_finish(wrong, "success", "{}", "ana"), NotFound, entity="ops_run")


@pytest.mark.parametrize("found", ["success", "failed", "cancelled"])
def test_no_verb_of_jobs_brings_it_back(store: Store, untouched: Untouched, found: str) -> None:
    """L5: an ops run ends once; retry, discard and force of its job are refused in its own words."""
    held = run_in(store, found)
    with untouched():
        answers = [
            *store.job_retry([held.job_id], "ana"),
            store.job_force(held.job_id, "quarantined", "ana", "why"),
            *(store.job_discard([held.job_id], "ana") if found != "cancelled" else ()),
            *([store.job_force(held.job_id, "succeeded", "ana", "why")] if found != "success" else ()),
        ]
    for answer in answers:
        refused(answer, InvalidTransition, entity="ops_run", entity_id=f"run-{held.job_id}", from_state=found)


def test_an_operation_over_many_passes_runs_by(store: Store) -> None:
    """J14: whoever retries everything that failed is told that runs were refused, and the rest is done."""
    run, plain = run_in(store, "failed").job_id, quarantined(store)
    operation_id = store.ids_reserve(1)
    store.operation_start(NewOperation(id=operation_id, action="retry", actor="ana"))
    row = store.operation_step(operation_id, 100)
    assert isinstance(row, OperationRow)
    assert (row.state, row.changed, row.refused) == ("done", 1, 1)
    assert (state(store, plain), ops_run(store, run).state) == ("pending", "failed")
