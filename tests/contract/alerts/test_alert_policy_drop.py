"""alert_policy_drop: what was set is taken back."""

from __future__ import annotations

from detent.model.records import Moved
from detent.store.contract import Store
from tests.contract.alerts.sample_policies import policy
from tests.contract.refusals import Untouched


def test_the_default_holds_again(store: Store, untouched: Untouched) -> None:
    """M2, E4, L3"""
    store.alert_policy_put(policy(enabled=False), "ana")
    assert store.alert_policy_drop("dead_letters", "bob", "again") == Moved("dead_letters", "default", True)
    assert store.alert_policy_list() == []
    line = store.transitions("alert_policy", "dead_letters")[-1]
    assert (line.from_state, line.to_state, line.actor, line.reason) == ("off", "default", "bob", "again")
    assert store.alert_raise("dead_letters", "", "warning", "60").changed
    with untouched():
        assert store.alert_policy_drop("dead_letters", "bob") == Moved("dead_letters", "default", False)
