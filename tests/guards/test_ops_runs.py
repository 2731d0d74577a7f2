"""Typed by hand: an ops run moves as its lifecycle says, and what was written about it stays."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from detent.errors import GuardViolation
from detent.lifecycle.library import OPS_RUN
from detent.model.records import Abort, Finish
from detent.store.contract import Store
from tests.contract.ops.sample_ops_runs import ops_run, run_in
from tests.guards.prompt import Prompt
from tests.guards.test_by_hand import logged


@pytest.fixture(autouse=True)
def healthy_in_the_end(store: Store) -> Iterator[None]:
    yield
    assert store.verify() == []


@pytest.mark.parametrize("found", ["success", "failed", "cancelled"])
def test_no_run_leaves_its_end(store: Store, prompt: Prompt, found: str) -> None:
    """L2, L5: not even with the line in the log that would bring another job back."""
    held = run_in(store, found)
    source = "succeeded" if found == "success" else found
    back = "state = 'pending', finished_at = NULL, committed_at = NULL, spared = attempt"
    prompt.refuses(
        logged(held.job_id, source, "pending", prompt), f"UPDATE {{job}} SET {back} WHERE id = {held.job_id}"
    )
    assert ops_run(store, held.job_id).state == found


def test_a_run_that_has_not_begun_cannot_be_finished(store: Store, prompt: Prompt) -> None:
    """L5: claimed leads to running and cancelled alone; the verbs of jobs are refused by the database as well."""
    held = run_in(store, "claimed")
    assert OPS_RUN.allowed("claimed") == ("running", "cancelled")
    finished = prompt.later("leased_at")
    prompt.refuses(
        f"UPDATE {{job}} SET state = 'succeeded', ended = attempt, started_at = {finished}, committed_at = {finished}, "
        f"finished_at = {finished} WHERE id = {held.job_id}"
    )
    with pytest.raises(GuardViolation, match="ops_run"):
        store.job_finish([Finish(held.job_id, 1)], "ana")
    with pytest.raises(GuardViolation, match="ops_run"):
        store.job_abort([Abort(job_id=held.job_id, attempt=1, outcome="error", fatal=True)], "ana")


@pytest.mark.parametrize("outcome", ["released", "snoozed", "unknown"])
def test_a_run_is_not_handed_back(store: Store, outcome: str) -> None:
    """L5: nothing leads from running to queued, or among the dead letters."""
    held = run_in(store, "running")
    with pytest.raises(GuardViolation, match="ops_run"):
        store.job_abort([Abort(job_id=held.job_id, attempt=1, outcome=outcome)], "ana")  # type: ignore[arg-type]
    assert ops_run(store, held.job_id).state == "running"


def test_what_was_written_about_a_run_stays(store: Store, prompt: Prompt) -> None:
    """E1: where it goes, of which revision, and what it was finished with."""
    held = run_in(store, "success")
    for change in ("git_sha = 'other'", "environment_id = 1", "key = 'k'", "finish_metadata = NULL", "job_id = 9"):
        prompt.refuses(f"UPDATE {{ops_run}} SET {change} WHERE job_id = {held.job_id}")
    prompt.refuses(f"DELETE FROM {{ops_run}} WHERE job_id = {held.job_id}")
    prompt.refuses("UPDATE {ops_environment} SET name = 'production'")
    prompt.refuses("DELETE FROM {ops_environment}")
