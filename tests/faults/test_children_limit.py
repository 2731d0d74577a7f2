"""SIGKILL at every statement of a worker that spawns children under a limit, claims them and ends them."""

from __future__ import annotations

import pytest

from detent.model.records import Claimed
from detent.store.contract import Store
from detent.testing.stores import StoreClock, is_sqlite, row_violations
from prove.trap import killed_at
from tests.contract.jobs.sample_jobs import LEASE, claim, finish, job, new_job
from tests.contract.workflows.sample_workflows import begin, spawn
from tests.faults.test_statements import die_everywhere

CHILD = ("mail.child",)
TOTAL, LIMIT = 6, 2


@pytest.mark.timeout(900)
def test_no_kill_lets_more_children_run(store: Store, store_url: str, clock: StoreClock, whole: bool) -> None:
    """F19: wherever a worker died, others spawn the rest, and at most two run at once until all have ended."""

    def spawn_all(held: Claimed, first: int) -> None:
        made = [new_job(store, id=first + n, task="mail.child") for n in range(TOTAL)]
        for portion, closed in ((made[:3], False), (made[3:], True)):
            spawn(store, held, TOTAL, first_id=first, jobs=portion, total=TOTAL, closed=closed, limit=LIMIT)

    def running(parent_id: int) -> int:
        return len(store.child_list(parent_id, state="running"))

    def work(parent_id: int) -> None:
        """Claim and end children until none is left."""
        while held := claim(store, tasks=CHILD):
            assert running(parent_id) <= LIMIT
            for one in held:
                finish(store, one)

    def die(k: int, after: bool) -> bool:
        held = begin(store)
        first = store.ids_reserve(TOTAL)

        def act() -> None:
            spawn_all(held, first)
            for one in claim(store, tasks=CHILD)[:1]:
                finish(store, one)
            claim(store, tasks=CHILD)

        died = killed_at(k, act, after=after)
        assert running(held.job_id) <= LIMIT, (k, after)
        assert row_violations(store, store_url) == [], (k, after)
        clock.advance(LEASE + 1)
        store.lease_reap(100)
        (again,) = claim(store)
        assert again.job_id == held.job_id
        spawn_all(again, store.ids_reserve(TOTAL))
        work(held.job_id)
        ids = store.child_list(held.job_id)
        assert [job(store, one).state for one in ids] == ["succeeded"] * TOTAL, (k, after)
        finish(store, again)
        return died

    die_everywhere(whole, die, 20 if is_sqlite(store_url) else 5)
