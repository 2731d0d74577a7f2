"""target_list: targets that fit, in the order of the plan."""

from __future__ import annotations

from typing import Any

from detent.store.contract import Store
from tests.contract.batches.sample_batch_runs import APPLY, act, applied_run, drive, previewed_run
from tests.contract.jobs.sample_jobs import abort, claim


def refs(store: Store, run_id: int, **fits: Any) -> list[str]:
    """The refs of those that fit."""
    return [target.ref for target in store.target_list(run_id, **fits)]


def test_targets_that_fit(store: Store) -> None:
    """B2: the difference, filtered."""
    made = previewed_run(store, ["b", "a", "d", "c"], same=["a"])
    assert refs(store, made.id) == ["b", "a", "d", "c"]
    assert refs(store, made.id, changed=False) == ["a"]
    assert refs(store, made.id, changed=True) == ["b", "d", "c"]
    assert refs(store, made.id, refs=["c", "a", "nobody", "c"]) == ["a", "c"]
    assert refs(store, made.id, refs=["c", "a"], changed=True) == ["c"]
    assert refs(store, made.id, after_n=1, limit=2) == ["a", "d"]
    assert refs(store, made.id, refs=["b", "c"], after_n=1) == ["c"]
    assert refs(store, made.id + 999) == []


def test_by_state_with_what_went_wrong(store: Store) -> None:
    made = applied_run(store, ["a", "b"], fails=["b"])
    (failed,) = store.target_list(made.id, state="failed")
    assert (failed.ref, failed.error, failed.attempts) == ("b", "boom", 1)
    assert refs(store, made.id, state="applied") == ["a"]


def test_attempts_are_those_of_its_job(store: Store) -> None:
    made = previewed_run(store, ["a"])
    act(store, made.id)
    drive(store)
    assert store.target_list(made.id)[0].attempts == 0
    abort(store, claim(store, tasks=[APPLY])[0])
    assert (store.target_list(made.id)[0].attempts, store.target_list(made.id)[0].state) == (1, "queued")
