"""target_add: what a run is about, a piece at a time."""

from __future__ import annotations

from detent.errors import DuplicateTarget, InvalidInput, LeaseLost, NotFound, RunBusy
from detent.model.batch_records import BatchRunRow
from detent.store.contract import Store
from detent.testing.stores import StoreClock
from tests.contract.batches.sample_batch_runs import PLAN, PREVIEW, add, create, held, run, targets
from tests.contract.jobs.sample_jobs import LEASE, claim, enqueue, new_job
from tests.contract.refusals import Untouched, refused


def test_targets_come_in_pieces_with_their_previews(store: Store) -> None:
    """B2, B3: the run counts what is known so far."""
    made = create(store)
    holder = held(store, PLAN)
    row = add(store, holder, made.id, 1, ["a", "b"])
    assert isinstance(row, BatchRunRow)
    assert (row.total, row.planned_at) == (2, None)
    row = add(store, holder, made.id, 3, ["c"], last=True)
    assert isinstance(row, BatchRunRow)
    assert row.total == 3
    assert row.planned_at is not None
    assert row.previewed_at is None
    assert {ref: (target.n, target.state) for ref, target in targets(store, made.id).items()} == {
        "a": (1, "preview"),
        "b": (2, "preview"),
        "c": (3, "preview"),
    }
    assert [one.run_id for one in claim(store, tasks=[PREVIEW])] == [made.id, made.id]


def test_a_run_without_targets_is_previewed_at_once(store: Store) -> None:
    made = create(store)
    row = store.target_add(held(store, PLAN), made.id, 1, [], None, True)
    assert isinstance(row, BatchRunRow)
    assert row.previewed_at is not None


def test_a_plan_made_again_adds_only_what_is_missing(store: Store) -> None:
    """B2: resumable. A piece that is there gets no second preview, and the same last piece changes nothing."""
    made = create(store)
    holder = held(store, PLAN)
    add(store, holder, made.id, 1, ["a", "b"])
    assert len(claim(store, tasks=[PREVIEW])) == 1
    add(store, holder, made.id, 1, ["a", "b"])
    assert claim(store, tasks=[PREVIEW]) == []
    add(store, holder, made.id, 1, ["a", "b", "c"], last=True)
    row = add(store, holder, made.id, 1, ["a", "b", "c"], last=True)
    assert isinstance(row, BatchRunRow)
    assert row.total == 3


def test_no_target_twice(store: Store, untouched: Untouched) -> None:
    """B3: not in one call, and not in two; none of the call is stored."""
    made = create(store)
    holder = held(store, PLAN)
    add(store, holder, made.id, 1, ["a", "b"])
    with untouched():
        refused(add(store, holder, made.id, 3, ["c", "a"]), DuplicateTarget, ref="a", n=4, found_n=1)
        refused(add(store, holder, made.id, 3, ["c", "d", "c"]), DuplicateTarget, ref="c", n=5, found_n=3)


def test_the_order_stays(store: Store, untouched: Untouched) -> None:
    made = create(store)
    holder = held(store, PLAN)
    add(store, holder, made.id, 1, ["a", "b"])
    with untouched():
        refused(add(store, holder, made.id, 2, ["x"]), InvalidInput, field="target 2")
        refused(add(store, holder, made.id, 5, ["x"]), InvalidInput, field="first_n")
        refused(add(store, holder, made.id, 0, ["x"]), InvalidInput, field="first_n")


def test_a_complete_plan_takes_no_more(store: Store, untouched: Untouched) -> None:
    made = create(store)
    holder = held(store, PLAN)
    add(store, holder, made.id, 1, ["a"], last=True)
    with untouched():
        refused(add(store, holder, made.id, 2, ["b"]), RunBusy, run_id=made.id)


def test_only_by_the_holder_of_a_job_of_the_run(store: Store, clock: StoreClock, untouched: Untouched) -> None:
    """G3: a plan that lost its lease adds nothing."""
    made = create(store)
    holder = held(store, PLAN)
    stranger = enqueue(store, task="else")
    other = held(store, "else")
    with untouched():
        refused(add(store, (holder[0], 2), made.id, 1, ["a"]), LeaseLost, attempt=2)
        assert other[0] == stranger
        refused(add(store, other, made.id, 1, ["a"]), LeaseLost, job_id=stranger)
        refused(add(store, holder, made.id + 999, 1, ["a"]), NotFound)
    clock.advance(LEASE + 1)
    with untouched():
        refused(add(store, holder, made.id, 1, ["a"]), LeaseLost)
    assert run(store, made.id).total == 0


def test_a_refused_preview_refuses_the_targets(store: Store) -> None:
    made = create(store)
    holder = held(store, PLAN)
    taken = new_job(store, id=enqueue(store), payload="{}")
    answer = store.target_add(holder, made.id, 1, ["a"], taken, True)
    assert isinstance(answer, Exception)
    assert run(store, made.id).total == 0
