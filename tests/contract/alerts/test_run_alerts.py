"""The alerts of batch runs are raised and resolved in the transaction of the event, by whatever verb causes it."""

from __future__ import annotations

import json

from msgspec.structs import replace

from detent.alerts.policies import DEFAULTS
from detent.model.batch_records import Observed, Previewed, ReconciliationRow
from detent.store.contract import Store
from detent.testing.stores import StoreClock
from tests.contract.alerts.sample_notices import notices
from tests.contract.batches.sample_batch_runs import (
    LOOK,
    PREVIEW,
    REVERT,
    act,
    applied_run,
    drive,
    finish,
    held,
    planned,
    run,
    targets,
    work,
)
from tests.contract.jobs.sample_jobs import new_job


def told(store: Store) -> dict[str, tuple[str, str]]:
    """The alerts by policy: scope and state."""
    return {alert.policy: (alert.scope, alert.state) for alert in store.alert_list()}


def test_a_partial_run_is_told_of_when_its_last_job_ends(store: Store, store_url: str) -> None:
    """B9: nobody has to look at runs, once a minute or ever."""
    made = applied_run(store, ["a", "b", "c"], fails=["b"])
    (alert,) = store.alert_list()
    assert (alert.id, alert.severity, alert.state, alert.value) == (
        f"run_partial/run:{made.id}",
        "warning",
        "firing",
        1.0,
    )
    assert alert.message == f"Run {made.id} of reprice is partial: 1 of 3 targets failed"
    facts = {"run_id": str(made.id), "batch": "reprice", "tenant": "", "applied": 2, "failed": 1, "mismatches": 0}
    assert json.loads(alert.facts or "") == facts
    assert notices(store_url) == [("run_partial", f"run:{made.id}", 1, "firing")]
    (line,) = store.transitions("alert", alert.id)
    assert (line.from_state, line.to_state, line.trigger) == (None, "firing", "raise")


def test_a_run_that_was_partial_for_three_seconds(store: Store, store_url: str, clock: StoreClock) -> None:
    """B9: it was never told of, since it was applied when somebody looked."""
    made = applied_run(store, ["a", "b"], fails=["b"])
    clock.advance(3)
    act(store, made.id, "retry_failed")
    drive(store)
    assert told(store) == {"run_partial": (f"run:{made.id}", "firing")}
    work(store)
    assert run(store, made.id).state == "applied"
    assert told(store) == {"run_partial": (f"run:{made.id}", "resolved")}
    assert [notice[-1] for notice in notices(store_url)] == ["firing", "resolved"]


def test_a_run_that_fails_again_is_another_episode(store: Store, clock: StoreClock) -> None:
    """B9: failed, then partial, then failed jobs declared done by hand."""
    made = applied_run(store, ["a", "b"], fails=["a", "b"])
    assert told(store) == {"run_failed": (f"run:{made.id}", "firing")}
    clock.advance(1)
    act(store, made.id, "retry_failed")
    drive(store)
    work(store, fails=["b"])
    assert told(store) == {
        "run_failed": (f"run:{made.id}", "resolved"),
        "run_partial": (f"run:{made.id}", "firing"),
    }
    act(store, made.id, "retry_failed")
    drive(store)
    work(store, fails=["b"])
    raised = {alert.policy: (alert.raised, alert.episode) for alert in store.alert_list()}
    assert raised["run_partial"] == (2, 1)
    job_id = targets(store, made.id)["b"].apply_job_id
    assert job_id is not None
    store.job_force(job_id, "succeeded", "ana", "done by hand")
    assert told(store)["run_partial"] == (f"run:{made.id}", "resolved")
    again = applied_run(store, ["x"], fails=["x"])
    act(store, again.id, "retry_failed")
    drive(store)
    work(store, fails=["x"])
    assert {alert.scope: alert.raised for alert in store.alert_list("firing")} == {f"run:{again.id}": 2}


def test_a_rollback_resolves_them(store: Store) -> None:
    made = applied_run(store, ["a", "b"], fails=["b"])
    act(store, made.id, "roll_back")
    drive(store)
    work(store, REVERT)
    assert run(store, made.id).state == "rolled_back"
    assert told(store) == {"run_partial": (f"run:{made.id}", "resolved")}


def test_so_many_failures_as_are_tolerated_raise_nothing(store: Store) -> None:
    """B9"""
    for tolerates, refs, fails in (
        ({"tolerate_count": 1}, ["a", "b"], ["a"]),
        ({"tolerate_share": 0.5}, ["a", "b"], ["a"]),
        ({"tolerate_count": 0}, ["a"], []),
    ):
        made = planned(store, refs, **tolerates)
        _preview(store, made.id, refs)
        act(store, made.id)
        drive(store)
        work(store, fails=fails)
        assert run(store, made.id).tolerated
    assert told(store) == {}
    made = planned(store, ["a", "b", "c"], tolerate_share=0.5)
    _preview(store, made.id, ["a", "b", "c"])
    act(store, made.id)
    drive(store)
    work(store, fails=["a", "b"])
    assert told(store) == {"run_partial": (f"run:{made.id}", "firing")}


def _preview(store: Store, run_id: int, refs: list[str]) -> None:
    holder = held(store, PREVIEW)
    store.target_previewed(holder, run_id, [Previewed(n=n, before="1", after="2") for n in range(1, len(refs) + 1)])
    finish(store, holder)


def look(store: Store, run_id: int, wrong: list[int]) -> None:
    """A look at the world that finds these targets to differ."""
    begun = store.reconcile_begin(run_id, None, new_job(store, task=LOOK, run_id=run_id), "ana")
    assert isinstance(begun, ReconciliationRow)
    holder = held(store, LOOK)
    found = [Observed(n, "2", "9") for n in wrong]
    store.reconcile_record(holder, run_id, begun.no, 0, 9, 2, found, True)
    finish(store, holder)


def test_mismatches_are_told_of_with_what_was_found(store: Store, clock: StoreClock) -> None:
    """B6: raised again by each look that finds some, resolved when none is open."""
    made = applied_run(store, ["a", "b"])
    look(store, made.id, [1, 2])
    (alert,) = store.alert_list()
    assert (alert.id, alert.severity, alert.value) == (f"mismatches_found/run:{made.id}", "warning", 2.0)
    assert alert.message == f"Run {made.id} of reprice: 2 of 2 targets no longer match what was applied"
    clock.advance(86_400)
    look(store, made.id, [2])
    (alert,) = store.alert_list()
    assert (alert.raised, alert.value, alert.last_at) == (2, 1.0, clock.now())
    look(store, made.id, [])
    assert told(store) == {"mismatches_found": (f"run:{made.id}", "resolved")}


def test_mismatches_of_a_run_that_is_rolled_back(store: Store) -> None:
    """B6: it fired for ever."""
    made = applied_run(store, ["a", "b"])
    look(store, made.id, [1])
    assert told(store) == {"mismatches_found": (f"run:{made.id}", "firing")}
    act(store, made.id, "roll_back", overwrite=True)
    assert told(store) == {"mismatches_found": (f"run:{made.id}", "resolved")}


def test_a_policy_that_is_switched_off_does_not_fire(store: Store, store_url: str) -> None:
    """B9"""
    for name in ("run_partial", "mismatches_found"):
        store.alert_policy_put(replace(DEFAULTS[name], enabled=False), "ana")
    store.alert_policy_put(replace(DEFAULTS["run_failed"], severity="info"), "ana")
    made = applied_run(store, ["a", "b"], fails=["b"])
    look(store, made.id, [1])
    assert (told(store), notices(store_url)) == ({}, [])
    applied_run(store, ["x"], fails=["x"])
    assert [alert.severity for alert in store.alert_list()] == ["info"]
