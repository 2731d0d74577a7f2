"""alert_policy_list: what was set of policies."""

from __future__ import annotations

from detent.store.contract import Store
from tests.contract.alerts.sample_policies import policy


def test_by_name(store: Store) -> None:
    """M2"""
    for name in ("b", "ä", "B"):
        store.alert_policy_put(policy(name=name, enabled=name != "b"), "ana")
    assert [(row.name, row.enabled) for row in store.alert_policy_list()] == [("B", True), ("b", False), ("ä", True)]
