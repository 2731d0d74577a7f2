"""Bad input that got as far as the store: a typed error, the same on every database, and nothing is written."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from detent.errors import DetentError, InvalidInput
from detent.model.records import Abort, NewEvent
from detent.store.contract import Store
from detent.store.jobs.filters import JobSearch
from detent.testing.stores import StoreClock
from tests.contract.jobs.sample_jobs import claim_one, enqueue, new_job
from tests.contract.refusals import Untouched

NAIVE = datetime(2026, 1, 1)  # noqa: DTZ001
WRONG_JOBS: dict[str, dict[str, Any]] = {
    "a naive due time": {"due_at": NAIVE},
    "a naive expiry": {"expires_at": NAIVE},
    "no attempts": {"attempts_max": 0},
    "negative attempts": {"attempts_max": -1},
    "a priority past the range": {"priority": 40_000},
    "a lone surrogate": {"payload": '"\ud800"', "fingerprint": "f"},
    "a number past 64 bits": {"run_id": 2**63},
}


@pytest.mark.parametrize("wrong", WRONG_JOBS)
def test_a_job_that_cannot_be_kept(store: Store, untouched: Untouched, wrong: str) -> None:
    """S3: refused whole, together with what was sent in the same call."""
    fine, spoiled = new_job(store), new_job(store, **WRONG_JOBS[wrong])
    with untouched(), pytest.raises(DetentError):
        store.job_enqueue([fine, spoiled])
    assert store.job_get([fine.id, spoiled.id]) == [None, None]


@pytest.mark.parametrize("outcome", ["done", "expired"])
def test_outcomes_that_are_not_the_callers_to_give(store: Store, untouched: Untouched, outcome: Any) -> None:
    enqueue(store)
    held = claim_one(store)
    with untouched():
        (answer,) = store.job_abort([Abort(job_id=held.job_id, attempt=1, outcome=outcome)], "ana")
    assert isinstance(answer, InvalidInput)
    assert answer.field == "outcome"


def test_an_event_that_cannot_be_kept(store: Store, untouched: Untouched) -> None:
    """S3"""
    job_id = enqueue(store)
    claim_one(store)
    line = NewEvent(job_id=job_id, attempt=1, level="info", message="\ud800")
    with untouched(), pytest.raises(DetentError):
        store.event_append([line])


def test_a_naive_time_in_a_question(store: Store) -> None:
    for ask in (
        lambda: store.counts_as_of(NAIVE),
        lambda: store.state_as_of("job", "1", NAIVE),
        lambda: store.job_prune(NAIVE, None, 1, "ana"),
    ):
        with pytest.raises(InvalidInput):
            ask()


def test_a_far_away_time_is_a_time(store: Store, clock: StoreClock) -> None:
    """The calendar's ends are kept like any other time."""
    far = datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)
    job_id = enqueue(store, due_at=far, expires_at=far)
    (row,) = store.job_list(JobSearch()).rows
    assert (row.id, row.due_at, row.expires_at) == (job_id, far, far)


def test_nobody_cancels_without_a_name(store: Store, untouched: Untouched) -> None:
    """E4: who it was is part of every explicit move."""
    job_id = enqueue(store)
    with untouched(), pytest.raises(DetentError):
        store.job_cancel([job_id], "")
    with untouched(), pytest.raises(DetentError):
        store.job_force(job_id, "quarantined", "ana", "")
