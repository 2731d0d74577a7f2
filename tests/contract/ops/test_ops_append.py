"""ops_append: the lines of a run, and its signs of life."""

from __future__ import annotations

import pytest

from detent.errors import LeaseLost, NotFound
from detent.model.ops_records import OpsToken
from detent.model.records import Appended
from detent.store.contract import Store
from detent.testing.stores import StoreClock
from tests.contract.jobs.sample_jobs import enqueue, state
from tests.contract.ops.sample_ops_runs import ops_run, run_in
from tests.contract.refusals import Untouched, refused


def test_the_first_line_makes_it_running(store: Store, clock: StoreClock) -> None:
    """O1, E2"""
    held = run_in(store, "claimed")
    clock.advance(1)
    assert store.ops_append(held.job_id, "info", "Starting build", '{"step":"build"}') == Appended(held.job_id, 2, True)
    row = ops_run(store, held.job_id)
    assert (row.state, row.begun_at, row.updated_at) == ("running", clock.now(), clock.now())
    assert (row.claimed_by, row.started_at) == ("ana", row.queued_at)


def test_a_line_that_is_sent_again_is_stored_once(store: Store, clock: StoreClock, untouched: Untouched) -> None:
    """E3: within ten seconds without a key, for ever with one; what differs in its payload is another line."""
    held = run_in(store, "running")
    first = store.ops_append(held.job_id, "info", "...", '{"line":1}')
    assert store.ops_append(held.job_id, "info", "...", '{"line":1}') == Appended(held.job_id, 3, False)
    assert first == Appended(held.job_id, 3, True)
    assert store.ops_append(held.job_id, "info", "...", '{"line":2}') == Appended(held.job_id, 4, True)
    assert store.ops_append(held.job_id, "info", "...", key="k") == Appended(held.job_id, 5, True)
    clock.advance(500)
    assert store.ops_append(held.job_id, "info", "...", key="k") == Appended(held.job_id, 5, False)
    with untouched():
        assert store.ops_append(held.job_id, "info", "...", key="k") == Appended(held.job_id, 5, False)


def test_each_line_is_a_sign_of_life(store: Store, clock: StoreClock) -> None:
    """R1: five minutes from the claim, ten from each line."""
    held = run_in(store, "claimed")
    clock.advance(299)
    for n in range(3):
        assert isinstance(store.ops_append(held.job_id, "info", f"still here {n}", token=held.token), Appended)
        assert store.lease_reap(100).leases == 0
        clock.advance(599)
    clock.advance(1)
    refused(store.ops_append(held.job_id, "info", "late"), LeaseLost, found="its lease has expired")
    assert store.lease_reap(100).aborted == (held.job_id,)
    assert ops_run(store, held.job_id).state == "failed"


@pytest.mark.parametrize("found", ["queued", "success", "failed", "cancelled"])
def test_nobody_writes_where_nobody_holds_it(store: Store, untouched: Untouched, found: str) -> None:
    """C4, G3: with a token or without."""
    held = run_in(store, found)
    of_job = state(store, held.job_id)
    for token in (None, held.token):
        instead = f"the job is {of_job}" if token is None or found != "queued" else "another claim has it"
        with untouched():
            refused(store.ops_append(held.job_id, "info", "hello", token=token), LeaseLost, found=instead)


def test_a_token_of_another_claim_is_refused(store: Store, untouched: Untouched) -> None:
    """J5: a worker that mixes up its runs writes to none of them."""
    one, two = run_in(store, "claimed"), run_in(store, "running")
    for token in (two.token, OpsToken(2, one.token.lease_id)):
        with untouched():
            refused(store.ops_append(one.job_id, "info", "hello", token=token), LeaseLost, job_id=one.job_id)


def test_what_is_no_run_is_not_found(store: Store, untouched: Untouched) -> None:
    job_id = enqueue(store)
    for wrong in (job_id, 999_999):
        with untouched():
            refused(store.ops_append(wrong, "info", "hello"), NotFound, entity="ops_run", entity_id=f"run-{wrong}")
