"""job_retry: jobs that carry a pipeline run are retried with their run only."""

from __future__ import annotations

from detent.errors import PartOfRun
from detent.store.contract import Store
from tests.contract.jobs.sample_jobs import abort
from tests.contract.pipelines.sample_pipeline_runs import claim_of, failed_run, started
from tests.contract.refusals import Untouched, refused


def test_a_job_of_a_run_is_not_retried_by_itself(store: Store, untouched: Untouched) -> None:
    """It was accepted, failed at once and overwrote the real error."""
    run_id, job_id = failed_run(store)
    with untouched():
        (answer,) = store.job_retry([job_id], "ana")
        refused(answer, PartOfRun, run_id=run_id, job_id=job_id)
    assert f"detent runs retry {run_id}" in str(answer)
    (row,) = store.job_get([job_id])
    assert row is not None
    assert row.error == "boom"


def test_nor_is_the_job_that_plans_a_run(store: Store, untouched: Untouched) -> None:
    """Its run has failed with it: retried, it would succeed and plan nothing."""
    run = started(store)
    held = claim_of(store, "plan")
    abort(store, held, error="boom", fatal=True)
    with untouched():
        (answer,) = store.job_retry([held.job_id], "ana")
        refused(answer, PartOfRun, run_id=run.id)
