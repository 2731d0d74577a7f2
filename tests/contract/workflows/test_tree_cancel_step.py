"""tree_cancel_step: the children of a cancelled job are cancelled, and theirs, a few at a time."""

from __future__ import annotations

from typing import Any

from detent.model.records import Cancelled, Claimed
from detent.model.workflow_records import CancelFound
from detent.store.contract import Store
from detent.testing.stores import StoreClock
from tests.contract.jobs.sample_jobs import abort, claim, claim_one, finish, job, state
from tests.contract.refusals import Untouched
from tests.contract.workflows.sample_workflows import begin, children, is_spawned, park, record, signal, spawn

CHILD = ("mail.child",)


def spawned(store: Store, held: Claimed, count: int, path: str = "kids", **options: Any) -> list[int]:
    first = is_spawned(spawn(store, held, count, path=path, **options)).first_id
    return list(range(first, first + count))


def states(store: Store, ids: list[int]) -> list[str]:
    return [state(store, one) for one in ids]


def test_children_are_cancelled_with_their_parent(store: Store) -> None:
    """F11: who and why are on the record of each; a detached child lives on."""
    held = begin(store)
    kids = spawned(store, held, 3)
    (alone,) = spawned(store, held, 1, "alone", detached=True)
    finish(store, claim_one(store, tasks=CHILD, limit=1))
    running = claim_one(store, tasks=CHILD, limit=1)
    assert running.job_id == kids[1]
    park(store, held, children())
    assert store.job_cancel([held.job_id], "bob", "sold out") == [Cancelled(held.job_id, "cancelled")]
    assert states(store, kids) == ["succeeded", "running", "pending"]
    assert store.tree_cancel_step(100) == 4
    assert states(store, [*kids, alone]) == ["succeeded", "running", "cancelled", "pending"]
    row = job(store, running.job_id)
    assert (row.cancel_requested_by, row.cancel_reason) == ("bob", f"with job {held.job_id}: sold out")
    last = store.transitions("job", str(kids[2]))[-1]
    assert (last.trigger, last.actor, last.reason) == ("cancel", "bob", f"with job {held.job_id}: sold out")
    assert store.tree_cancel_step(100) == 0
    assert store.verify() == []


def test_a_tree_is_cancelled_from_the_top_in_portions(store: Store) -> None:
    """F11: each portion is a transaction; those that ended in another way are passed through."""
    root = begin(store)
    kids = spawned(store, root, 4)
    grandchildren: list[int] = []
    for n in range(4):
        held = claim_one(store, tasks=CHILD, limit=1)
        grandchildren += spawned(store, held, 2)
        if n == 1:
            finish(store, held)
        elif n == 2:
            abort(store, held, "error", fatal=True)
        else:
            park(store, held, signal())
    store.job_cancel([root.job_id], "bob")
    assert store.job_cancel([root.job_id], "eve") == [Cancelled(root.job_id, "running")]
    looked = []
    while True:
        looked.append(store.tree_cancel_step(3))
        assert store.verify() == []
        if not looked[-1]:
            break
    assert states(store, kids) == ["cancelled", "succeeded", "quarantined", "cancelled"]
    assert states(store, grandchildren) == ["cancelled"] * 8
    assert {store.transitions("job", str(one))[-1].reason for one in grandchildren} == {f"with job {root.job_id}"}
    assert abort(store, root, "cancelled").state == "cancelled"


def test_children_of_a_child_that_was_given_up_are_cancelled(store: Store) -> None:
    """F11: a discard leaves the children of a dead workflow alone, and the cancel of the tree missed them."""
    root = begin(store)
    spawned(store, root, 1)
    kid = claim_one(store, tasks=CHILD)
    (grandchild,) = spawned(store, kid, 1)
    abort(store, kid, "error", fatal=True)
    store.job_discard([kid.job_id], "eve")
    assert states(store, [kid.job_id, grandchild]) == ["cancelled", "pending"]
    park(store, root, children())
    store.job_cancel([root.job_id], "bob")
    while store.tree_cancel_step(2):
        pass
    assert states(store, [kid.job_id, grandchild]) == ["cancelled", "cancelled"]
    assert store.transitions("job", str(kid.job_id))[-1].trigger == "discard"


def test_what_is_marked_spawns_nothing(store: Store, untouched: Untouched) -> None:
    """F11: a child that a portion has marked is refused its children; one that has spawned before loses them."""
    root = begin(store)
    spawned(store, root, 2)
    one, two = claim(store, tasks=CHILD, limit=2)
    kids = spawned(store, one, 2)
    store.job_cancel([root.job_id], "bob")
    assert spawned(store, two, 1) != []  # it is not marked yet
    assert store.tree_cancel_step(2) == 2
    first = store.ids_reserve(2)
    with untouched():
        assert spawn(store, one, 0, path="more", first_id=first) == CancelFound(one.job_id, one.attempt)
        assert spawn(store, two, 0, path="more", first_id=first) == CancelFound(two.job_id, two.attempt)
    while store.tree_cancel_step(2):
        pass
    assert states(store, [*kids, *store.child_list(two.job_id)]) == ["cancelled"] * 3


def test_children_of_a_retried_workflow_are_its_own(store: Store) -> None:
    """Those that are spawned after the retry live on, even if the cancel of the others has not ended."""
    held = begin(store)
    old = spawned(store, held, 2)
    park(store, held, children())
    store.job_cancel([held.job_id], "bob")
    store.job_retry([held.job_id], "bob")
    new = spawned(store, claim_one(store), 2, "others")
    assert store.tree_cancel_step(100) == 2
    assert (states(store, old), states(store, new)) == (["cancelled"] * 2, ["pending"] * 2)


def test_children_with_steps_to_undo_are_woken(store: Store, clock: StoreClock) -> None:
    """F11, F20: they undo before they end; without undo, they end at once."""
    root = begin(store)
    kids = spawned(store, root, 2)
    for held in claim(store, tasks=CHILD, limit=2):
        record(store, held, undo=held.job_id == kids[0])
        park(store, held, signal())
    park(store, root, children())
    clock.advance(1)
    store.job_cancel([root.job_id], "bob", "sold out")
    store.tree_cancel_step(100)
    assert states(store, kids) == ["pending", "cancelled"]
    row = job(store, kids[0])
    assert row.cancel_reason == f"with job {root.job_id}: sold out"
    assert row.due_at == row.cancel_requested_at == clock.now()
    assert store.verify() == []


def test_without_undo_the_whole_tree_ends_at_once(store: Store) -> None:
    """F20: also if it was cancelled with undo before."""
    root = begin(store)
    (kid,) = spawned(store, root, 1)
    for held in (claim_one(store, tasks=CHILD), root):
        record(store, held, "b", undo=True)
        park(store, held, signal())
    for undo in (True, False):
        store.job_cancel([root.job_id], "bob", "sold out", undo=undo)
        store.tree_cancel_step(100)
        assert states(store, [root.job_id, kid]) == ["pending" if undo else "cancelled"] * 2
    assert store.transitions("job", str(kid))[-1].metadata == '{"undo":false}'
    assert store.verify() == []
