"""What a target and its run make of whatever happens to their jobs, whoever moves them."""

from __future__ import annotations

from typing import Any

import pytest

from detent.errors import InvalidTransition, RunBusy
from detent.store.contract import Store
from detent.testing.stores import StoreClock
from tests.contract.batches.sample_batch_runs import (
    APPLY,
    DRIVE,
    PREVIEW,
    act,
    applied_run,
    drive,
    planned,
    previewed_run,
    run,
    states,
    targets,
    work,
)
from tests.contract.jobs.sample_jobs import LEASE, abort, claim, finish
from tests.contract.refusals import refused


def ready(store: Store, *refs: str) -> int:
    """A run whose targets are queued."""
    made = previewed_run(store, refs)
    act(store, made.id)
    drive(store)
    return made.id


def moves(store: Store, run_id: int, n: int = 1) -> list[tuple[str | None, str]]:
    """What is on record of a target."""
    return [(line.from_state, line.to_state) for line in store.transitions("target", f"{run_id}/{n}")]


def test_a_target_follows_its_job(store: Store, clock: StoreClock) -> None:
    """B1, B3: claimed, thrown back, and done; the counters in the same moment; every step on record."""
    run_id = ready(store, "a", "b")
    assert (run(store, run_id).state, run(store, run_id).queued) == ("queued", 2)
    clock.advance(1)
    (first,) = claim(store, tasks=[APPLY], limit=1)
    row = run(store, run_id)
    assert (row.state, row.queued, row.applying, row.started_at) == ("applying", 1, 1, clock.now())
    abort(store, first, error="boom", delay=2.0)
    assert (run(store, run_id).queued, run(store, run_id).applying) == (2, 0)
    clock.advance(2)
    store.job_promote(10)
    clock.advance(1)
    work(store)
    row = run(store, run_id)
    assert (row.state, row.applied, row.finished_at) == ("applied", 2, clock.now())
    assert targets(store, run_id)["a"].applied_at == clock.now()
    assert moves(store, run_id) == [
        (None, "preview"),
        ("preview", "queued"),
        ("queued", "applying"),
        ("applying", "queued"),
        ("queued", "applying"),
        ("applying", "applied"),
    ]
    assert [line.to_state for line in store.transitions("batch_run", str(run_id))] == [
        *("preview", "queued", "applying", "applied"),
    ]


@pytest.mark.parametrize("outcome", ["throttled", "snoozed", "released"])
def test_a_target_that_is_put_off_uses_no_attempt(store: Store, outcome: Any, clock: StoreClock) -> None:
    """B9: it is queued again, and its attempts are all left."""
    run_id = ready(store, "a")
    for _ in range(4):
        abort(store, claim(store, tasks=[APPLY])[0], outcome, delay=1.0)
        assert states(store, run_id) == {"a": "queued"}
        clock.advance(100)
        store.job_promote(10)
        store.limit_reset(APPLY, "ana")
    work(store)
    assert run(store, run_id).state == "applied"


def test_a_worker_that_dies_takes_no_target_with_it(store: Store, clock: StoreClock) -> None:
    """G1: the reaper brings its targets back, until their attempts are used up: the first lost lease does not count."""
    run_id = ready(store, "a", "b")
    for _ in range(3):
        assert states(store, run_id) == {"a": "queued", "b": "queued"}
        claim(store, tasks=[APPLY])
        clock.advance(LEASE + 1)
        store.lease_reap(10)
    assert states(store, run_id) == {"a": "failed", "b": "failed"}
    assert run(store, run_id).state == "failed"


def test_a_dead_letter_retried_by_itself_brings_the_run_back(store: Store) -> None:
    """B4: as if its run had been asked."""
    made = applied_run(store, ["a", "b", "c"], fails=["b", "c"])
    dead = [targets(store, made.id)[ref].apply_job_id for ref in ("b", "c")]
    assert dead[0] is not None
    assert dead[1] is not None
    store.job_retry([dead[0]], "ana", "mended")
    row = run(store, made.id)
    assert (row.state, row.queued, row.failed, row.finished_at) == ("applying", 1, 1, None)
    work(store)
    assert run(store, made.id).state == "partial"
    store.job_discard([dead[1]], "ana")
    assert states(store, made.id)["c"] == "failed"
    store.job_retry([dead[1]], "ana")
    work(store)
    assert run(store, made.id).state == "applied"
    assert moves(store, made.id, 3)[-3:] == [("failed", "queued"), ("queued", "applying"), ("applying", "applied")]


def test_a_queued_target_whose_job_is_cancelled_has_failed(store: Store) -> None:
    """B1: by way of applying, as declared; the run ends all the same."""
    run_id = ready(store, "a", "b")
    job_id = targets(store, run_id)["a"].apply_job_id
    assert job_id is not None
    store.job_cancel([job_id], "ana", "not this one")
    assert states(store, run_id) == {"a": "failed", "b": "queued"}
    assert run(store, run_id).state == "applying"
    assert moves(store, run_id)[-2:] == [("queued", "applying"), ("applying", "failed")]
    work(store)
    assert run(store, run_id).state == "partial"
    store.job_retry([job_id], "ana")
    work(store)
    assert run(store, run_id).state == "applied"


def test_a_target_declared_done_by_hand(store: Store) -> None:
    """B1: it is applied, and the run is what its targets are."""
    made = applied_run(store, ["a", "b"], fails=["b"])
    job_id = targets(store, made.id)["b"].apply_job_id
    assert job_id is not None
    store.job_force(job_id, "succeeded", "ana", "done in the shop itself")
    assert states(store, made.id) == {"a": "applied", "b": "applied"}
    assert run(store, made.id).state == "applied"
    assert moves(store, made.id, 2)[-3:] == [("failed", "queued"), ("queued", "applying"), ("applying", "applied")]


def test_what_is_being_rolled_back_is_not_retried(store: Store) -> None:
    """B4: also not by its dead letter; others of the same call are."""
    made = applied_run(store, ["a", "b"], fails=["b"])
    other = applied_run(store, ["x"], fails=["x"])
    act(store, made.id, "roll_back")
    jobs = [targets(store, made.id)["b"].apply_job_id, targets(store, other.id)["x"].apply_job_id]
    answers = store.job_retry([job_id for job_id in jobs if job_id is not None], "ana")
    refused(answers[0], RunBusy, run_id=made.id)
    assert (states(store, made.id)["b"], states(store, other.id)["x"]) == ("failed", "queued")
    succeeded = targets(store, made.id)["a"].apply_job_id
    assert succeeded is not None
    refused(store.job_retry([succeeded], "ana")[0], InvalidTransition, from_state="succeeded")


@pytest.mark.parametrize("task", [PREVIEW, DRIVE])
def test_a_run_whose_own_jobs_give_up_says_so(store: Store, task: str) -> None:
    """G1: stuck until somebody retries them; then it goes on."""
    made = planned(store, ["a"]) if task == PREVIEW else previewed_run(store, ["a"])
    if task == DRIVE:
        act(store, made.id)
    (one,) = claim(store, tasks=[task])
    abort(store, one, error="no way", fatal=True)
    assert (run(store, made.id).stuck, run(store, made.id).error) == (1, "no way")
    store.job_retry([one.job_id], "ana")
    assert (run(store, made.id).stuck, run(store, made.id).error) == (0, None)
    (one,) = claim(store, tasks=[task])
    finish(store, one)
    assert run(store, made.id).stuck == 0
