"""workflow_spawn: children and the step that says so are one transaction, and their end is counted."""

from __future__ import annotations

import pytest

from detent.errors import InvalidInput, KeyConflict, LeaseLost
from detent.model.records import Claimed
from detent.model.workflow_records import CancelFound, ChildGroupRow, Spawned
from detent.store.contract import Store
from detent.store.workflows.rules import DEPTH_MAX
from detent.testing.stores import StoreClock
from tests.contract.jobs.sample_jobs import LEASE, abort, claim, claim_one, enqueue, finish, job, new_job, state
from tests.contract.refusals import Untouched, refused
from tests.contract.workflows.sample_workflows import (
    begin,
    children,
    is_spawned,
    load,
    look,
    park,
    paths,
    record,
    signal,
    spawn,
    step,
)

CHILD = ("mail.child",)


def group(store: Store, held: Claimed) -> ChildGroupRow:
    (row,) = store.child_groups(held.job_id)
    return row


def counts(store: Store, held: Claimed) -> tuple[int, int, int]:
    row = group(store, held)
    return row.succeeded, row.failed, row.dead


def test_children_are_enqueued_with_the_step(store: Store) -> None:
    held = begin(store)
    answer = is_spawned(spawn(store, held, 3, step=step(held, "kids", kind="spawn", value='"3"')))
    assert answer == Spawned("kids", answer.first_id, 3, True)
    ids = list(range(answer.first_id, answer.first_id + 3))
    assert store.child_list(held.job_id) == ids
    assert [job(store, one).parent_id for one in ids] == [held.job_id] * 3
    assert job(store, held.job_id).parent_id is None
    (row,) = load(store, held).steps
    assert (row.path, row.kind, row.value) == ("kids", "spawn", '"3"')
    assert group(store, held) == ChildGroupRow(
        parent_id=held.job_id,
        generation=1,
        path="kids",
        first_id=answer.first_id,
        total=3,
        succeeded=0,
        failed=0,
        dead=0,
        closed=True,
    )


def test_a_step_on_record_is_answered_and_nothing_is_enqueued(store: Store) -> None:
    held = begin(store)
    first = is_spawned(spawn(store, held, 2))
    again = is_spawned(spawn(store, held, 2))
    assert again == Spawned("kids", first.first_id, 2, False)
    assert len(store.child_list(held.job_id)) == 2


def test_portions(store: Store) -> None:
    """A large group comes in portions; the last one records the step. One that was sent before is not sent again."""
    held = begin(store)
    first = store.ids_reserve(5)
    made = [new_job(store, id=first + n, task="mail.child") for n in range(5)]
    spawn(store, held, 5, first_id=first, jobs=made[:2], closed=False)
    spawn(store, held, 5, first_id=first, jobs=made[:2], closed=False)
    assert (paths(load(store, held)), group(store, held).closed) == ([], False)
    finish(store, claim(store, tasks=CHILD)[0])
    assert isinstance(spawn(store, held, 5, first_id=first, jobs=made[2:]), Spawned)
    assert (paths(load(store, held)), group(store, held).closed) == (["kids"], True)
    assert store.child_list(held.job_id) == [one.id for one in made]
    assert counts(store, held) == (1, 0, 0)


def test_the_tree(store: Store) -> None:
    held = begin(store)
    spawn(store, held, 1)
    child = claim_one(store, tasks=CHILD)
    record(store, child)
    spawn(store, child, 1)
    (grandchild,) = claim(store, tasks=CHILD)
    record(store, grandchild)
    rows = store.workflow_get([held.job_id, child.job_id, grandchild.job_id])
    assert [(row.root_id, row.depth) for row in rows if row] == [(held.job_id, depth) for depth in range(3)]
    assert [row.parent_id for row in rows if row] == [None, held.job_id, child.job_id]
    assert load(store, grandchild).depth == 2


def test_a_tree_has_sixteen_levels(store: Store, untouched: Untouched) -> None:
    """F19: a task that spawns itself comes to an end, also if that is the first thing that it records."""
    held = begin(store)
    for _ in range(DEPTH_MAX):
        is_spawned(spawn(store, held, 1))
        held = claim_one(store, tasks=CHILD)
    with untouched():
        refused(spawn(store, held, 1, first_id=10_000), InvalidInput, field="spawn", allowed="at most 16 levels")
    record(store, held)
    with untouched():
        refused(spawn(store, held, 1, first_id=10_000), InvalidInput, field="spawn", allowed="at most 16 levels")


def end(store: Store, child: Claimed, how: str) -> None:
    match how:
        case "succeeded":
            finish(store, child)
        case "failed" | "quarantined":
            abort(store, child, fatal=True, error="boom")
        case "cancelled":
            store.job_cancel([child.job_id], "bob")
            abort(store, child, "cancelled")
    assert state(store, child.job_id) == how


@pytest.mark.parametrize(
    ("how", "expected"),
    [("succeeded", (1, 0, 0)), ("failed", (0, 1, 0)), ("cancelled", (0, 1, 0)), ("quarantined", (0, 0, 1))],
)
def test_every_end_of_a_child_is_counted_and_wakes_the_parent(
    store: Store, how: str, expected: tuple[int, int, int]
) -> None:
    """F10: whatever became of it."""
    held = begin(store)
    first = store.ids_reserve(1)
    spawn(
        store, held, 1, first_id=first, jobs=[new_job(store, id=first, task="mail.child", dead_letter=how != "failed")]
    )
    park(store, held, children())
    assert claim(store) == []
    end(store, claim_one(store, tasks=CHILD), how)
    assert counts(store, held) == expected
    again = claim_one(store)
    assert again.job_id == held.job_id
    succeeded, failed, dead = expected
    assert look(store, again, children()).value == f'{{"succeeded":{succeeded},"failed":{failed},"dead":{dead}}}'


def test_the_last_child_wakes_the_parent(store: Store, clock: StoreClock) -> None:
    """F19: one wake-up for all of them."""
    held = begin(store)
    spawn(store, held, 30)
    park(store, held, children())
    *most, last = claim(store, tasks=CHILD)
    for child in most[:5]:
        abort(store, child, fatal=True)
    for child in most[5:]:
        finish(store, child)
    assert claim(store) == []
    clock.advance(1)
    finish(store, last)
    assert job(store, held.job_id).due_at == clock.now()
    assert counts(store, held) == (25, 0, 5)
    assert claim_one(store).attempt == 2


def test_one_finish_of_many_children(store: Store) -> None:
    held = begin(store)
    spawn(store, held, 100)
    park(store, held, children())
    ended = claim(store, tasks=CHILD)
    for child in ended:
        finish(store, child)
    assert counts(store, held) == (100, 0, 0)
    assert claim_one(store).attempt == 2


def test_a_child_in_quarantine_is_waited_for_if_it_may_be_saved(store: Store) -> None:
    """F10: an operator retries it, and the parent goes on by itself."""
    held = begin(store)
    spawn(store, held, 2)
    park(store, held, children(settled=True))
    one, two = claim(store, tasks=CHILD)
    finish(store, one)
    abort(store, two, fatal=True)
    assert (counts(store, held), claim(store)) == ((1, 0, 1), [])
    store.job_retry([two.job_id], "bob")
    assert (counts(store, held), claim(store)) == ((1, 0, 0), [])
    finish(store, claim_one(store, tasks=CHILD))
    assert counts(store, held) == (2, 0, 0)
    assert claim_one(store).job_id == held.job_id


@pytest.mark.parametrize("how", ["discard", "force"])
def test_an_operator_ends_a_child(store: Store, how: str) -> None:
    held = begin(store)
    spawn(store, held, 1)
    park(store, held, children(settled=True))
    child = claim_one(store, tasks=CHILD)
    abort(store, child, fatal=True)
    if how == "discard":
        store.job_discard([child.job_id], "bob")
    else:
        store.job_force(child.job_id, "succeeded", "bob", "by hand")
    assert counts(store, held) == ((0, 1, 0) if how == "discard" else (1, 0, 0))
    assert claim_one(store).job_id == held.job_id


def test_a_reaped_child_counts_when_it_has_ended(store: Store, clock: StoreClock) -> None:
    held = begin(store)
    first = store.ids_reserve(1)
    spawn(store, held, 1, first_id=first, jobs=[new_job(store, id=first, task="mail.child", attempts_max=1)])
    park(store, held, children())
    claim(store, tasks=CHILD)
    clock.advance(LEASE + 1)
    store.lease_reap(10)
    assert counts(store, held) == (0, 0, 1)
    assert claim_one(store).job_id == held.job_id


def test_an_expired_child_counts(store: Store, clock: StoreClock) -> None:
    held = begin(store)
    first = store.ids_reserve(1)
    late = clock.now().replace(year=clock.now().year + 1)
    spawn(store, held, 1, first_id=first, jobs=[new_job(store, id=first, task="mail.child", expires_at=late)])
    park(store, held, children())
    clock.set(late)
    store.job_expire(10)
    assert counts(store, held) == (0, 1, 0)
    assert claim_one(store).job_id == held.job_id


def test_children_of_another_group_wake_nobody(store: Store) -> None:
    held = begin(store)
    spawn(store, held, 1, path="a")
    spawn(store, held, 1, path="b")
    park(store, held, children("b"), signal())
    a, b = claim(store, tasks=CHILD)
    finish(store, a)
    assert claim(store) == []
    finish(store, b)
    assert claim_one(store).job_id == held.job_id


def test_an_open_group_wakes_nobody(store: Store) -> None:
    held = begin(store)
    first = store.ids_reserve(2)
    made = [new_job(store, id=first + n, task="mail.child") for n in range(2)]
    spawn(store, held, 2, first_id=first, jobs=made[:1], closed=False)
    finish(store, claim_one(store, tasks=CHILD))
    park(store, held, children())
    assert claim(store) == []


def test_detached_children_belong_to_no_group(store: Store) -> None:
    """F11: a cancel of the tree leaves them alone."""
    held = begin(store)
    spawn(store, held, 2, detached=True)
    assert store.child_groups(held.job_id) == []
    assert len(store.child_list(held.job_id)) == 2
    for child in claim(store, tasks=CHILD):
        finish(store, child)


def test_no_child_appears_after_a_cancel(store: Store, untouched: Untouched) -> None:
    """F11: a spawn after the cancel is refused."""
    held = begin(store)
    store.job_cancel([held.job_id], "bob")
    first = store.ids_reserve(2)
    with untouched():
        assert spawn(store, held, 0, total=0, first_id=first) == CancelFound(held.job_id, 1)
    abort(store, held, "cancelled")


def test_a_refused_child_refuses_all(store: Store, untouched: Untouched) -> None:
    taken = enqueue(store, key="k", task="mail.other")
    held = begin(store)
    first = store.ids_reserve(2)
    same = new_job(store, id=first + 1, task="mail.other", key="k")
    other = new_job(store, id=first + 1, task="mail.child", key="k")
    with untouched():
        for keyed in (same, other):
            made = [new_job(store, id=first, task="mail.child"), keyed]
            refused(spawn(store, held, 2, first_id=first, jobs=made), KeyConflict, key="k", job_id=taken)


def test_another_number_of_children_than_an_earlier_attempt_is_refused(store: Store, untouched: Untouched) -> None:
    """F19: children that are there are never left out of the group."""
    held = begin(store)
    first = store.ids_reserve(5)
    made = [new_job(store, id=first + n, task="mail.child") for n in range(5)]
    spawn(store, held, 5, first_id=first, jobs=made[:3], closed=False)
    with untouched():
        for total, jobs, closed in ((2, made[:2], True), (4, made[3:4], False), (6, made[3:], True)):
            answer = spawn(store, held, total, first_id=first, jobs=jobs, closed=closed)
            refused(answer, KeyConflict, key="kids", job_id=held.job_id, of="children")
    assert str(answer).startswith(f"an earlier attempt of job {held.job_id} began step 'kids' with another number")


def test_only_the_holder(store: Store, clock: StoreClock, untouched: Untouched) -> None:
    held = begin(store)
    abort(store, held)
    current = claim_one(store)
    first = store.ids_reserve(1)
    made = [new_job(store, id=first, task="mail.child")]
    with untouched():
        refused(spawn(store, held, 1, first_id=first, jobs=made), LeaseLost, attempt=1)
    clock.advance(LEASE + 1)
    with untouched():
        refused(spawn(store, current, 1, first_id=first, jobs=made), LeaseLost)
