"""pipeline_force: an operator consolidates what is there, on record."""

from __future__ import annotations

from detent.errors import InvalidTransition, NotFound
from detent.model.records import Moved
from detent.store.contract import Store
from tests.contract.jobs.sample_jobs import abort, claim, finish
from tests.contract.pipelines.sample_pipeline_runs import claim_of, fanned_out, page, run_of
from tests.contract.refusals import Untouched, refused


def one_of_two_failed(store: Store, **overrides: object) -> int:
    run = fanned_out(store, ["a", "b"], **overrides)
    one, two = claim(store, tasks=["detent.pipeline.page/p"])
    abort(store, one, error="boom", fatal=True)
    store.page_store(page(run.id, two, n=2, records={"y": "1"}))
    finish(store, two)
    return run.id


def test_a_skipped_run_is_consolidated_in_spite_of_its_failures(store: Store) -> None:
    """P3, E4: with an operator and a reason, marked as forced; the job that tells of it does not fail it then."""
    run_id = one_of_two_failed(store)
    skipped = claim_of(store, "skipped")
    assert store.pipeline_force(run_id, "ana", "good enough") == Moved(str(run_id), "consolidation_triggered", True)
    finish(store, skipped)
    assert claim_of(store, "consolidate").run_id == run_id
    assert run_of(store, run_id).state == "consolidating"
    line = store.transitions("pipeline_run", str(run_id))[-2]
    assert (line.trigger, line.actor, line.reason, line.forced) == ("force", "ana", "good enough", True)


def test_a_run_started_with_force_goes_on_by_itself(store: Store) -> None:
    """P3: what was said at the start stands in the line of the fan-in."""
    run_id = one_of_two_failed(store, forced=True, started_by="ana", reason="partial is fine")
    line = store.transitions("pipeline_run", str(run_id))[-1]
    assert (line.to_state, line.actor, line.reason) == ("consolidation_triggered", "ana", "partial is fine")
    assert line.forced


def test_a_tolerated_failure_is_no_force(store: Store) -> None:
    """P3: a tolerated number of partitions may fail."""
    run_id = one_of_two_failed(store, tolerated=1)
    line = store.transitions("pipeline_run", str(run_id))[-1]
    assert (line.to_state, line.reason, line.forced) == ("consolidation_triggered", "1 of 2 partitions failed", False)


def test_other_states_refuse(store: Store, untouched: Untouched) -> None:
    """L2: force leads from skipped only."""
    run = fanned_out(store)
    with untouched():
        refused(store.pipeline_force(run.id, "ana", "why"), InvalidTransition, from_state="workers_running")
        refused(store.pipeline_force(run.id + 999, "ana", "why"), NotFound)
