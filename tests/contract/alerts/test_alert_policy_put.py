"""alert_policy_put: when something is wrong, as somebody sets it."""

from __future__ import annotations

from msgspec.structs import asdict

from detent.model.alert_records import PolicyRow
from detent.model.records import Moved
from detent.store.contract import Store
from detent.testing.stores import StoreClock
from tests.contract.alerts.sample_policies import policy
from tests.contract.refusals import Untouched


def test_it_is_set_and_changed_on_record(store: Store, clock: StoreClock) -> None:
    """M2, E4: with who, why and when."""
    assert store.alert_policy_put(policy(), "ana", "too many") == Moved("dead_letters", "on", True)
    clock.advance(1)
    assert store.alert_policy_put(policy(threshold=80), "bob") == Moved("dead_letters", "on", True)
    (row,) = store.alert_policy_list()
    assert row == PolicyRow(**asdict(policy(threshold=80.0)), changed_by="bob", reason=None, changed_at=clock.now())
    lines = store.transitions("alert_policy", "dead_letters")
    assert [(line.from_state, line.to_state, line.actor, line.reason) for line in lines] == [
        ("default", "on", "ana", "too many"),
        ("on", "on", "bob", None),
    ]


def test_the_same_again_changes_nothing(store: Store, clock: StoreClock, untouched: Untouched) -> None:
    """L3: also where there is no threshold."""
    event = policy(name="run_partial", measure="event", threshold=None)
    store.alert_policy_put(policy(), "ana")
    store.alert_policy_put(event, "ana")
    clock.advance(1)
    with untouched():
        assert store.alert_policy_put(policy(), "bob") == Moved("dead_letters", "on", False)
        assert store.alert_policy_put(event, "bob") == Moved("run_partial", "on", False)


def test_switched_off_nothing_fires_by_it_any_more(store: Store, untouched: Untouched) -> None:
    """M2: what fires is resolved, and what is raised later is not."""
    for scope in ("queue:b", "queue:a"):
        store.alert_raise("dead_letters", scope, "warning", "51 dead letters")
    store.alert_raise("other", "", "warning", "something else")
    assert store.alert_policy_put(policy(enabled=False), "ana") == Moved("dead_letters", "off", True)
    assert [row.policy for row in store.alert_list("firing")] == ["other"]
    assert store.transitions("alert", "dead_letters/queue:a")[-1].actor == "ana"
    with untouched():
        assert store.alert_raise("dead_letters", "", "warning", "60") == Moved("dead_letters", "off", False)
    store.alert_policy_put(policy(), "ana")
    assert store.alert_raise("dead_letters", "", "warning", "60").changed


def test_its_severity_counts(store: Store) -> None:
    """M2: whoever raises it says how grave it is by default."""
    store.alert_policy_put(policy(severity="critical"), "ana")
    store.alert_raise("dead_letters", "", "warning", "60")
    assert store.alert_list()[0].severity == "critical"
