"""alert_outcomes_put: what became of what was to be told."""

from __future__ import annotations

from detent.model.alert_records import DeliveryOutcome
from detent.store.contract import Store
from detent.testing.stores import StoreClock
from tests.contract.alerts.sample_policies import ALL
from tests.contract.refusals import Untouched


def test_sent_given_up_or_to_be_tried_again(store: Store, clock: StoreClock) -> None:
    """M2: with what went wrong."""
    for scope in ("a", "b", "c"):
        store.alert_raise("low", scope, "warning", "low")
    store.alert_spread([ALL])
    taken, _ = store.alert_take("hook", 10, 100, 60)
    first, second, third = (one.notice.n for one in taken)
    clock.advance(1)
    store.alert_outcomes_put(
        "hook",
        [
            DeliveryOutcome(notice_n=first, state="sent"),
            DeliveryOutcome(notice_n=second, state="failed", error="it says no"),
            DeliveryOutcome(notice_n=third, state="pending", error="no answer, 'really'", delay=30),
        ],
    )
    (sent,) = store.alert_deliveries("low", "a")
    assert (sent.state, sent.sent_at, sent.error, sent.tries) == ("sent", clock.now(), None, 1)
    (failed,) = store.alert_deliveries("low", "b")
    assert (failed.state, failed.error) == ("failed", "it says no")
    (pending,) = store.alert_deliveries("low", "c")
    assert (pending.state, pending.sent_at, pending.error) == ("pending", None, "no answer, 'really'")
    assert (pending.due_at - clock.now()).total_seconds() == 30


def test_what_is_settled_stays_settled(store: Store, clock: StoreClock, untouched: Untouched) -> None:
    """L3: whoever comes late changes nothing."""
    store.alert_raise("low", "", "warning", "low")
    store.alert_spread([ALL])
    ((taken,), _) = store.alert_take("hook", 10, 100, 60)
    store.alert_outcomes_put("hook", [DeliveryOutcome(notice_n=taken.notice.n, state="sent")])
    clock.advance(1)
    with untouched():
        store.alert_outcomes_put("hook", [DeliveryOutcome(notice_n=taken.notice.n, state="failed", error="late")])
        store.alert_outcomes_put(
            "other", [DeliveryOutcome(notice_n=taken.notice.n, state="failed", error="not its own")]
        )
        store.alert_outcomes_put("hook", [])


def test_what_was_given_back_was_not_tried(store: Store) -> None:
    """M2: whoever takes it next begins to count where it was."""
    store.alert_raise("low", "", "warning", "low")
    store.alert_spread([ALL])
    for tried, expected in ((False, 1), (True, 1), (False, 2), (True, 2)):
        ((taken,), _) = store.alert_take("hook", 10, 100, 60)
        assert taken.tries == expected
        store.alert_outcomes_put("hook", [DeliveryOutcome(notice_n=taken.notice.n, state="pending", tried=tried)])
