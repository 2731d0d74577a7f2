"""target_conflict: what was found in place of the expected value is on the target, and counted."""

from __future__ import annotations

from detent.errors import LeaseLost, NotFound
from detent.model.batch_records import BatchRunRow
from detent.model.records import Abort
from detent.store.contract import Store
from tests.contract.batches.sample_batch_runs import (
    APPLY,
    REVERT,
    act,
    applied_run,
    drive,
    held,
    previewed_run,
    run,
    targets,
    work,
)
from tests.contract.refusals import Untouched, refused


def fail(store: Store, holder: tuple[int, int]) -> None:
    abort = Abort(job_id=holder[0], attempt=holder[1], outcome="error", error="Conflict", fatal=True)
    store.job_abort([abort], "ana")


def test_a_conflict_is_counted_until_the_target_is_tried_again(store: Store) -> None:
    """B2"""
    made = previewed_run(store, ["a", "b"])
    act(store, made.id)
    drive(store)
    holder = held(store, APPLY)
    row = store.target_conflict(holder, made.id, '{"p":9}')
    assert isinstance(row, BatchRunRow)
    assert (row.conflicts, row.applying) == (1, 1)
    store.target_conflict(holder, made.id, '{"p":8}')
    fail(store, holder)
    work(store)
    assert (run(store, made.id).state, run(store, made.id).conflicts) == ("partial", 1)
    assert {ref: target.conflict for ref, target in targets(store, made.id).items()} == {"a": '{"p":8}', "b": None}
    again = act(store, made.id, "retry_failed", overwrite=True)
    assert (again.overwrite, again.conflicts) == (True, 1)
    drive(store)
    work(store)
    assert (run(store, made.id).state, run(store, made.id).conflicts) == ("applied", 0)
    assert targets(store, made.id)["a"].conflict is None


def test_a_conflict_of_a_rollback(store: Store) -> None:
    """B4"""
    made = applied_run(store, ["a"])
    assert act(store, made.id, "roll_back").overwrite is False
    drive(store)
    holder = held(store, REVERT)
    store.target_conflict(holder, made.id, '{"p":9}')
    fail(store, holder)
    assert (run(store, made.id).conflicts, targets(store, made.id)["a"].conflict) == (1, '{"p":9}')
    act(store, made.id, "roll_back", overwrite=True)
    drive(store)
    work(store, REVERT)
    assert (run(store, made.id).state, run(store, made.id).conflicts) == ("rolled_back", 0)


def test_only_by_the_holder(store: Store, untouched: Untouched) -> None:
    """G3"""
    made = previewed_run(store, ["a"])
    act(store, made.id)
    drive(store)
    job_id, attempt = held(store, APPLY)
    with untouched():
        refused(store.target_conflict((job_id, attempt + 1), made.id, "1"), LeaseLost)
        refused(store.target_conflict((job_id, attempt), 404, "1"), NotFound)
