"""alert_spread: every sink gets what it wants to hear of, once."""

from __future__ import annotations

from detent.model.alert_records import Route
from detent.store.contract import Store
from tests.contract.alerts.sample_policies import ALL
from tests.contract.refusals import Untouched


def test_by_severity_and_once(store: Store, untouched: Untouched) -> None:
    """M2: a warning does not wake anybody at night."""
    pager = Route("pager", ("critical",))
    store.alert_raise("low", "", "warning", "low")
    store.alert_raise("very_low", "", "critical", "very low")
    assert store.alert_spread([ALL, pager]) == 3
    with untouched():
        assert store.alert_spread([ALL, pager]) == 0
    assert [row.sink for row in store.alert_deliveries("low", "")] == ["hook"]
    assert [row.sink for row in store.alert_deliveries("very_low", "")] == ["hook", "pager"]


def test_a_sink_that_comes_later_does_not_hear_of_old_things(store: Store) -> None:
    """M2: no storm when one is added."""
    store.alert_raise("low", "", "warning", "low")
    store.alert_spread([ALL])
    assert store.alert_spread([ALL, Route("mail", ALL.severities)]) == 0
    store.alert_resolve("low", "", "well")
    assert store.alert_spread([ALL, Route("mail", ALL.severities)]) == 2


def test_without_sinks_nothing_is_kept_for_later(store: Store) -> None:
    store.alert_raise("low", "", "warning", "low")
    assert store.alert_spread([]) == 0
    assert store.alert_spread([ALL]) == 0
