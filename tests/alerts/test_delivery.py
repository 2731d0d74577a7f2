"""The courier: everything is told, in order, once, and never as a storm; whoever is away keeps nobody waiting."""

from __future__ import annotations

import threading

import pytest

from detent.alerts.delivery import deliver, sinks_of
from detent.alerts.http_sinks import PagerSink, WebhookSink
from detent.alerts.sink_options import SinkOptions
from detent.model.clock import TurnableClock
from detent.store.contract import Store
from detent.testing.stores import START, StoreClock, another_store
from tests.alerts.receivers import Answer, http_receiver

TIMEOUT = 5.0


def spread(store: Store, options: SinkOptions) -> None:
    store.alert_spread([sink.route for sink in sinks_of(options)])


def raised(store: Store, count: int, policy: str = "low") -> None:
    for number in range(count):
        store.alert_raise(policy, f"task:{number}", "critical", f"low {number}")


def states(store: Store, count: int, sink: str = "webhook") -> list[str]:
    return [
        row.state
        for number in range(count)
        for row in store.alert_deliveries("low", f"task:{number}")
        if row.sink == sink
    ]


def test_firing_and_resolved_are_told_once_each_in_order(store: Store, clock: StoreClock) -> None:
    """M2"""
    with http_receiver() as receiver:
        options = SinkOptions(webhook_url=receiver.url)
        sink = WebhookSink(options)
        store.alert_raise("low", "", "warning", "low")
        store.alert_raise("low", "", "warning", "lower")
        clock.advance(60)
        store.alert_resolve("low", "", "well again")
        spread(store, options)
        assert deliver(store, sink, TIMEOUT) == 2
        assert deliver(store, sink, TIMEOUT) == 0
        assert receiver.texts == ["WARNING: low: low", "RESOLVED after 1 min: low: well again"]


def test_a_sink_that_is_down_loses_nothing(store: Store, clock: StoreClock) -> None:
    """M2: it is asked ever more rarely, and gets everything in order when it is back."""
    with http_receiver() as receiver:
        options = SinkOptions(webhook_url=receiver.url)
        sink = WebhookSink(options)
        receiver.answers = [Answer(503, "away"), Answer(503, "away")]
        raised(store, 2)
        spread(store, options)
        assert deliver(store, sink, TIMEOUT) == 0
        (row,) = [row for row in store.alert_deliveries("low", "task:0") if row.sink == "webhook"]
        assert (row.state, row.error) == ("pending", "it answered 503: away")
        clock.advance(4)
        raised(store, 1, "more")
        spread(store, options)
        assert deliver(store, sink, TIMEOUT) == 0
        assert receiver.refused == 1
        clock.advance(1)
        assert deliver(store, sink, TIMEOUT) == 0
        clock.advance(5)
        assert deliver(store, sink, TIMEOUT) == 0
        assert receiver.refused == 2
        clock.advance(5)
        assert deliver(store, sink, TIMEOUT) == 3
        assert [text.partition(": ")[2] for text in receiver.texts] == [
            "low/task:0: low 0",
            "low/task:1: low 1",
            "more/task:0: low 0",
        ]


def test_what_it_asks_for_is_waited(store: Store, clock: StoreClock) -> None:
    """M2: `Retry-After`."""
    with http_receiver() as receiver:
        options = SinkOptions(webhook_url=receiver.url)
        receiver.answers = [Answer(429, "slow down", {"Retry-After": "120"})]
        raised(store, 1)
        spread(store, options)
        deliver(store, WebhookSink(options), TIMEOUT)
        clock.advance(119)
        assert deliver(store, WebhookSink(options), TIMEOUT) == 0
        clock.advance(1)
        assert deliver(store, WebhookSink(options), TIMEOUT) == 1


def test_a_message_that_is_turned_down_keeps_nobody_waiting(
    store: Store, clock: StoreClock, caplog: pytest.LogCaptureFixture
) -> None:
    """M2: after five tries giving up on it, on record with what was said, and those behind it go on, who have had no
    try of their own until then."""
    with http_receiver() as receiver:
        options = SinkOptions(webhook_url=receiver.url)
        receiver.answers = [Answer(400, "invalid_payload")] * 6
        raised(store, 2)
        spread(store, options)
        for _ in range(5):
            deliver(store, WebhookSink(options), TIMEOUT)
            clock.advance(300)
        assert states(store, 2) == ["failed", "pending"]
        assert deliver(store, WebhookSink(options), TIMEOUT) == 0
        clock.advance(5)
        assert deliver(store, WebhookSink(options), TIMEOUT) == 1
        assert states(store, 2) == ["failed", "sent"]
        assert "giving up on it" in caplog.text


def test_a_storm_is_a_few_messages_and_a_summary(store: Store, clock: StoreClock) -> None:
    """M2, G6: at most `minute_max` messages in a minute; the last one says how many alerts it stands for."""
    with http_receiver() as receiver:
        options = SinkOptions(webhook_url=receiver.url, minute_max=3)
        sink = WebhookSink(options)
        raised(store, 19)
        spread(store, options)
        assert deliver(store, sink, TIMEOUT) == 3
        assert receiver.texts[2] == "17 more alerts: 17 firing"
        assert states(store, 19) == ["sent", "sent", *["summarised"] * 16, "sent"]
        raised(store, 2, "more")
        spread(store, options)
        assert deliver(store, sink, TIMEOUT) == 0
        clock.advance(60)
        assert deliver(store, sink, TIMEOUT) == 2
        assert len(receiver.posted) == 5


def test_whoever_is_paged_hears_of_each_in_its_time(store: Store, clock: StoreClock) -> None:
    """M2: incidents are not summarised, or nobody could resolve them."""
    with http_receiver() as receiver:
        options = SinkOptions(pager_url=receiver.url, pager_key="R0", minute_max=3)
        sink = PagerSink(options)
        raised(store, 5)
        store.alert_raise("mild", "", "warning", "not worth it")
        spread(store, options)
        assert deliver(store, sink, TIMEOUT) == 3
        clock.advance(60)
        assert deliver(store, sink, TIMEOUT) == 2
        assert len({one["dedup_key"] for one in receiver.posted}) == 5
        assert store.alert_deliveries("mild", "")[0].sink == "log"


def test_two_at_once_tell_it_once(store: Store, clock: StoreClock, store_url: str) -> None:
    """M2: as many workers as there are."""
    with http_receiver() as receiver:
        options = SinkOptions(webhook_url=receiver.url, minute_max=100)
        raised(store, 8)
        spread(store, options)
        stores = [another_store(store_url, clock) for _ in range(3)]
        gate = threading.Barrier(3)

        def courier(mine: Store) -> None:
            gate.wait()
            deliver(mine, WebhookSink(options), TIMEOUT)

        threads = [threading.Thread(target=courier, args=(one,)) for one in stores]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for one in stores:
            one.close()
        assert len(receiver.posted) == 8
        assert len(set(receiver.texts)) == 8


def test_whoever_died_while_telling_is_followed_by_another(store: Store, clock: StoreClock) -> None:
    """M2: taken and never settled, it is told after all."""
    with http_receiver() as receiver:
        options = SinkOptions(webhook_url=receiver.url)
        raised(store, 1)
        spread(store, options)
        store.alert_take("webhook", 10, 100, 60.0)
        assert deliver(store, WebhookSink(options), TIMEOUT) == 0
        clock.advance(60)
        assert deliver(store, WebhookSink(options), TIMEOUT) == 1
        assert len(receiver.posted) == 1


class _Hasty(TurnableClock):
    """A minute passes between two looks at it."""

    def monotonic(self) -> float:
        self.advance(60)
        return super().monotonic()


def test_slow_answers_do_not_keep_what_was_taken(store: Store, clock: StoreClock) -> None:
    """M2: what cannot be begun in time is given back, and taken again; nothing is told twice or left behind."""
    with http_receiver() as receiver:
        options = SinkOptions(webhook_url=receiver.url)
        raised(store, 4)
        spread(store, options)
        assert deliver(store, WebhookSink(options), TIMEOUT, _Hasty(START)) == 4
        assert len(set(receiver.texts)) == 4
        assert states(store, 4) == ["sent"] * 4
