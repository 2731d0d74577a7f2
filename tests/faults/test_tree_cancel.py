"""The cancel of a tree: killed at every statement, and while the tree still grows. `make test`: some statements, and
some thousand jobs; `make faults`: every statement, and 10,000 jobs."""

from __future__ import annotations

import threading
from collections import Counter
from contextlib import suppress

import pytest

from detent.model.records import Claimed
from detent.model.workflow_records import CancelFound, Spawned
from detent.store.contract import Store
from detent.testing.stores import row_violations
from prove.trap import killed_at
from tests.contract.jobs.sample_jobs import abort, claim, claim_one, job
from tests.contract.workflows.sample_workflows import begin, children, is_spawned, park, record, signal, spawn
from tests.faults.test_statements import die_everywhere

CHILD = ("mail.child",)
PARENTS = 10


def tree(store: Store) -> tuple[int, list[int], Claimed]:
    """A parked workflow with two children, one parked and one running, which have two children each: its id, the ids of
    all, and the running one."""
    root = begin(store)
    first = is_spawned(spawn(store, root, 2)).first_id
    park(store, root, children())
    for held in claim(store, tasks=CHILD, limit=2):
        spawn(store, held, 2)
        if held.job_id == first:
            record(store, held, "b", undo=True)
            park(store, held, signal())
    return root.job_id, [root.job_id, *everything_below(store, root.job_id)], held


def everything_below(store: Store, parent_id: int) -> list[int]:
    found = store.child_list(parent_id, limit=100_000)
    return [*found, *(one for child in found for one in everything_below(store, child))]


def cancel_tree(store: Store, root_id: int) -> None:
    store.job_cancel([root_id], "bob", "sold out")
    while store.tree_cancel_step(2):
        pass


def outcome(store: Store, ids: list[int]) -> list[tuple[str, bool]]:
    """The state of each job, and whether a cancel was requested."""
    return [(row.state, row.cancel_requested_at is not None) for row in (job(store, one) for one in ids)]


@pytest.mark.timeout(600)
def test_a_cancel_killed_anywhere_is_carried_on(store: Store, store_url: str, whole: bool) -> None:
    """F11: the root is marked or not; if it is, others cancel the rest, and each job once."""

    def die(k: int, after: bool) -> bool:
        root_id, ids, running = tree(store)
        died = killed_at(k, lambda: cancel_tree(store, root_id), after=after)
        assert row_violations(store, store_url) == [], (k, after)
        is_marked = job(store, root_id).state == "cancelled"
        assert store.tree_cancel_count(root_id) == 0 or is_marked, (k, after)
        cancel_tree(store, root_id)
        marked, gone = [("pending", True), ("running", True)], ("cancelled", False)
        assert outcome(store, ids) == [gone, *marked, *[gone] * 4], (k, after)
        lines = Counter(
            line.trigger
            for one in ids
            for line in store.transitions("job", str(one))
            if line.trigger in ("cancel", "request_cancel")
        )
        assert lines == {"cancel": 5, "request_cancel": 2}, (k, after)
        store.job_cancel(ids, "bob", "end of the test", undo=False)
        assert abort(store, running, "cancelled").state == "cancelled"
        return died

    die_everywhere(whole, die, 3)


@pytest.mark.timeout(900)
def test_a_tree_that_grows_while_it_is_cancelled(store: Store, store_url: str, whole: bool) -> None:
    """F11: three levels. Every parent spawns until it is refused; then it has no child that is not cancelled."""
    nodes, portion = (10_000, 100) if whole else (1_500, 25)
    root = begin(store)
    is_spawned(spawn(store, root, PARENTS, closed=True))
    parents = claim(store, tasks=CHILD, limit=PARENTS)
    alone = is_spawned(spawn(store, root, 1, path="alone", detached=True)).first_id
    spawned, refused, failures = [0] * PARENTS, threading.Semaphore(0), list[BaseException]()
    enough = threading.Event()

    def grow(place: int, held: Claimed) -> None:
        try:
            for n in range(10_000):
                answer = spawn(store, held, portion, path=f"kids{n}")
                if isinstance(answer, CancelFound):
                    break
                assert isinstance(answer, Spawned), answer
                spawned[place] += portion
                if sum(spawned) >= nodes // 2:
                    enough.set()
        except BaseException as error:
            failures.append(error)
            enough.set()
        finally:
            refused.release()

    threads = [threading.Thread(target=grow, args=one) for one in enumerate(parents)]
    for thread in threads:
        thread.start()
    enough.wait()
    store.job_cancel([root.job_id], "bob", "sold out")
    ended = 0
    while ended < PARENTS or store.tree_cancel_count(root.job_id):
        store.tree_cancel_step(200)
        with suppress(ValueError):
            ended += refused.acquire(blocking=False)
    for thread in threads:
        thread.join()
    assert failures == []
    found = [len(store.child_list(held.job_id, limit=100_000)) for held in parents]
    assert found == spawned
    assert [len(store.child_list(held.job_id, state="cancelled", limit=100_000)) for held in parents] == spawned
    assert outcome(store, [root.job_id, *(held.job_id for held in parents)]) == [("running", True)] * (PARENTS + 1)
    assert outcome(store, [alone]) == [("pending", False)]
    for held in (*parents, root):
        assert isinstance(spawn(store, held, 1, path="late"), CancelFound)
    assert sum(spawned) >= nodes // 2
    assert row_violations(store, store_url) == []
    assert claim_one(store, tasks=CHILD).job_id == alone
