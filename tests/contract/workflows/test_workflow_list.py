"""workflow_list: workflows that have recorded something, by id from the largest on."""

from __future__ import annotations

from datetime import timedelta

from detent.model.workflow_records import WorkflowSearch
from detent.store.contract import Store
from tests.contract.jobs.sample_jobs import enqueue, finish
from tests.contract.refusals import Untouched
from tests.contract.workflows.sample_workflows import begin, parked_for_signal, record, send


def test_each_filter(store: Store, untouched: Untouched) -> None:
    parked = parked_for_signal(store, tenant="acme")
    woken = parked_for_signal(store)
    held = begin(store)
    record(store, held, version=3)
    finish(store, held)
    send(store, woken)
    enqueue(store)
    now = store.now()
    chosen = {
        "all": (WorkflowSearch(), [held.job_id, woken, parked]),
        "task": (WorkflowSearch(task="mail.other"), []),
        "ended": (WorkflowSearch(task=held.task, state="succeeded"), [held.job_id]),
        "version": (WorkflowSearch(version=1), [woken, parked]),
        "state": (WorkflowSearch(state="pending"), [woken, parked]),
        "parked": (WorkflowSearch(parked=True), [parked]),
        "tenant": (WorkflowSearch(tenant="acme"), [parked]),
        "none": (WorkflowSearch(tenant="acme", version=3), []),
        "since": (WorkflowSearch(since=now - timedelta(days=1)), [held.job_id, woken, parked]),
        "later": (WorkflowSearch(since=now + timedelta(days=1)), []),
    }
    with untouched():
        assert {name: store.workflow_list(search).ids for name, (search, _) in chosen.items()} == {
            name: ids for name, (_, ids) in chosen.items()
        }


def test_portions_name_the_place_to_continue_below(store: Store) -> None:
    made = [parked_for_signal(store, tenant="acme" if n == 0 else "") for n in range(4)]
    first = store.workflow_list(WorkflowSearch(tenant="acme"), limit=3)
    assert (first.ids, first.next) == ([], made[1])
    rest = store.workflow_list(WorkflowSearch(tenant="acme"), before=made[1], limit=3)
    assert (rest.ids, rest.next) == ([made[0]], None)
