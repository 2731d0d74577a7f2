"""alert_figures: what policies look at."""

from __future__ import annotations

from detent.model.alert_records import DeliveryOutcome, Figure, Route
from detent.model.limit_records import NewLimit
from detent.store.contract import Store
from detent.testing.stores import StoreClock
from tests.contract.alerts.sample_policies import ALL
from tests.contract.jobs.sample_jobs import abort, claim, claim_one, enqueue, quarantined


def test_dead_letters_now(store: Store) -> None:
    """M1, M2: by whole, queue and task; nothing where there are none."""
    assert store.alert_figures("dead_letters", "whole", 0) == []
    quarantined(store)
    quarantined(store)
    quarantined(store, queue="mail")
    assert store.alert_figures("dead_letters", "whole", 0) == [Figure("", 3.0, 3)]
    assert store.alert_figures("dead_letters", "queue", 0) == [Figure("default", 2.0, 2), Figure("mail", 1.0, 1)]
    assert store.alert_figures("dead_letters", "task", 0) == [Figure("mail.send", 3.0, 3)]


def test_throttled_in_a_window(store: Store, clock: StoreClock) -> None:
    """M1, M2, B5: also of a task that has no limit."""
    for _ in range(4):
        enqueue(store)
        abort(store, claim_one(store), "throttled", delay=3600)
        clock.advance(100)
    enqueue(store)
    abort(store, claim_one(store), "error", delay=3600)
    assert store.alert_figures("throttled", "whole", 300) == [Figure("", 2.0, 2)]
    assert store.alert_figures("throttled", "task", 10_000) == [Figure("mail.send", 4.0, 4)]
    clock.advance(20_000)
    assert store.alert_figures("throttled", "whole", 300) == []


def test_breakers_that_are_not_closed(store: Store, clock: StoreClock) -> None:
    """M2, B5"""
    store.limit_put(NewLimit(key="shop", concurrency_max=100, tasks=("mail.send",)))
    for _ in range(6):
        enqueue(store)
    assert store.alert_figures("breaker_open", "limit", 0) == []
    for one in claim(store):
        abort(store, one, "throttled", delay=1)
    assert store.alert_figures("breaker_open", "limit", 0) == [Figure("shop", 1.0, 1)]
    clock.advance(120)
    assert store.alert_figures("breaker_open", "limit", 0) == [Figure("shop", 1.0, 1)]
    store.limit_reset("shop", "ana")
    assert store.alert_figures("breaker_open", "limit", 0) == []


def test_the_oldest_that_is_due(store: Store, clock: StoreClock) -> None:
    """M1, M2: for how long it has been waiting; not what is not due, nor what is paused."""
    assert store.alert_figures("oldest_ready", "queue", 0) == []
    enqueue(store, queue="mail")
    clock.advance(50)
    enqueue(store, queue="mail", priority=5)
    enqueue(store, queue="other")
    enqueue(store, queue="held")
    store.queue_pause("held", "ana")
    clock.advance(10)
    figures = {one.scope: one.value for one in store.alert_figures("oldest_ready", "queue", 0)}
    assert figures == {"mail": 60.0, "other": 10.0}
    assert store.alert_figures("oldest_ready", "whole", 0)[0].value == 60.0


def test_of_events_nothing_is_measured(store: Store) -> None:
    quarantined(store)
    assert store.alert_figures("event", "whole", 0) == []


def test_what_is_not_told_yet(store: Store) -> None:
    """M2: whether there is anything to tell."""
    assert store.alert_figures("undelivered", "whole", 0) == []
    store.alert_raise("low", "", "warning", "low")
    assert store.alert_figures("undelivered", "whole", 0) == [Figure("", 1.0, 1)]
    store.alert_spread([ALL, Route("mail", ("warning",))])
    assert store.alert_figures("undelivered", "whole", 0) == [Figure("", 2.0, 2)]
    for sink in ("hook", "mail"):
        ((taken,), _) = store.alert_take(sink, 10, 10, 60)
        store.alert_outcomes_put(sink, [DeliveryOutcome(notice_n=taken.notice.n, state="sent")])
    assert store.alert_figures("undelivered", "whole", 0) == []
