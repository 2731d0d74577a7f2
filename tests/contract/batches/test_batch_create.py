"""batch_create: a run in state preview, and the job that makes its plan."""

from __future__ import annotations

from detent.errors import IdConflict
from detent.store.contract import Store
from detent.testing.stores import StoreClock
from tests.contract.batches.sample_batch_runs import PLAN, create, new_run, run
from tests.contract.jobs.sample_jobs import enqueue, job, new_job
from tests.contract.refusals import Untouched, refused


def test_a_run_begins_in_preview_with_its_plan(store: Store, clock: StoreClock) -> None:
    """B1, B2: nothing is known of it yet, and nothing applied."""
    item = new_run(store, tenant="acme", reason="sale", correlation_id="c1", metadata="{}", tolerate_count=3)
    plan = new_job(store, task=PLAN, run_id=item.id)
    row = store.batch_create(item, plan)
    assert row == run(store, item.id)
    assert (run(store, item.id).state, run(store, item.id).total) == ("preview", 0)
    assert run(store, item.id).created_at == clock.now()
    assert job(store, plan.id).run_id == item.id
    (line,) = store.transitions("batch_run", str(item.id))
    assert (line.from_state, line.to_state, line.actor, line.reason) == (None, "preview", "ana", "sale")


def test_the_same_again_is_the_same_run(store: Store, untouched: Untouched) -> None:
    item, plan = new_run(store), new_job(store, task=PLAN)
    first = store.batch_create(item, plan)
    with untouched():
        assert store.batch_create(item, plan) == first


def test_an_id_that_belongs_to_something_else_is_refused(store: Store, untouched: Untouched) -> None:
    made = create(store)
    taken = new_job(store, id=enqueue(store), payload="{}")
    other = new_run(store, id=made.id, payload="{}")
    with untouched():
        refused(store.batch_create(other, taken), IdConflict, job_id=made.id)
        refused(store.batch_create(new_run(store), taken), IdConflict, job_id=taken.id)
