"""What a group of children under a limit costs: no more with many children than with few."""

from __future__ import annotations

from typing import Any

import pytest

from detent.model.records import Finish
from detent.store.contract import Store, Verbs
from tests.contract.jobs.sample_jobs import claim, new_job
from tests.contract.workflows.sample_workflows import begin, is_spawned, spawn
from tests.plans.measured import work_of

CHILD = ("mail.child",)
FEW, MANY, PORTION = 100, 2_000, 1_000


@pytest.mark.timeout(600)
def test_work_does_not_grow_with_the_group(store: Store, store_url: str, whole: bool) -> None:
    """F19: an end of a child, and the claim of the next one, while all others wait for room. `make faults`: 10,000."""
    costs = []
    for total in (FEW, 10_000 if whole else MANY):
        held = begin(store)
        first = store.ids_reserve(total)
        for start in range(0, total, PORTION):
            made = [new_job(store, id=first + n, task="mail.child") for n in range(start, min(start + PORTION, total))]
            closed = start + PORTION >= total
            is_spawned(spawn(store, held, total, first_id=first, jobs=made, total=total, closed=closed, limit=5))
        children = claim(store, tasks=CHILD)
        assert len(children) == 5
        lease_id = store.ids_reserve(1)

        def end_and_claim(verbs: Verbs, _rows: Any, child: Any = children[0], lease_id: int = lease_id) -> None:
            verbs.job_finish([Finish(child.job_id, child.attempt)], "ana")
            assert len(claim(verbs, tasks=CHILD, lease_id=lease_id)) == 1

        costs.append(work_of(store_url, end_and_claim))
        for child in children:
            store.job_finish([Finish(child.job_id, child.attempt)], "ana")
        store.job_cancel(store.child_list(held.job_id, state="pending", limit=10_000), "ana")
    few, many = costs
    assert many <= 1.2 * few + 20
