"""batch_portion: what an action has to move next."""

from __future__ import annotations

from detent.errors import NotFound
from detent.model.batch_records import ActionPortion, NewAction
from detent.store.contract import Store
from tests.contract.batches.sample_batch_runs import DRIVE, act, applied_run, previewed_run
from tests.contract.jobs.sample_jobs import claim, new_job
from tests.contract.refusals import refused


def portion(store: Store, limit: int) -> ActionPortion:
    """Of the action whose job is there."""
    (driver,) = claim(store, tasks=[DRIVE])
    found = store.batch_portion(int(driver.payload.removeprefix('{"action":').removesuffix("}")), limit)
    assert isinstance(found, ActionPortion)
    return found


def test_the_next_targets_in_order(store: Store) -> None:
    made = previewed_run(store, ["a", "b", "c", "d"], same=["b"])
    act(store, made.id)
    found = portion(store, 2)
    assert [target.ref for target in found.targets] == ["a", "c"]
    assert (found.action.cursor, found.to_cursor, found.last) == (0, 3, False)
    again = store.batch_portion(found.action.id, 10)
    assert isinstance(again, ActionPortion)
    assert ([target.ref for target in again.targets], again.to_cursor, again.last) == (["a", "c", "d"], 4, True)


def test_of_what_was_named(store: Store) -> None:
    made = previewed_run(store, ["a", "b", "c"])
    act(store, made.id, refs=("c", "b"))
    found = portion(store, 10)
    assert [target.ref for target in found.targets] == ["b", "c"]
    assert (found.action.chosen, found.last) == (2, True)


def test_of_a_rollback(store: Store) -> None:
    made = applied_run(store, ["a", "b"], fails=["a"])
    act(store, made.id, "roll_back")
    assert [target.ref for target in portion(store, 10).targets] == ["b"]


def test_no_such_action(store: Store) -> None:
    refused(store.batch_portion(99, 10), NotFound, entity="batch_action")


def test_an_action_that_has_nothing_left(store: Store) -> None:
    made = previewed_run(store, ["a"])
    item = NewAction(id=store.ids_reserve(1), run_id=made.id, action="apply", actor="ben", refs=("a",))
    store.batch_act(item, new_job(store, task=DRIVE, run_id=made.id))
    found = store.batch_portion(item.id, 1)
    assert isinstance(found, ActionPortion)
    assert (found.to_cursor, found.last) == (1, False)
