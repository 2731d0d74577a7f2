"""The service of alerts: by one worker, told to real receivers, whoever else is away."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from contextlib import closing

import pytest
from msgspec.structs import replace

from detent.alerts.policies import DEFAULTS
from detent.alerts.sink_options import SinkOptions
from detent.model.clock import TurnableClock
from detent.store.contract import Store
from detent.testing.stores import START, StoreClock, another_store, plain_connection, table
from detent.worker.options import WorkerOptions
from detent.worker.services.alerts import Alerts
from detent.worker.services.invariants import Invariants
from detent.worker.services.service_set import ServiceSet
from tests.alerts.receivers import MailReceiver, http_receiver, mail_receiver
from tests.contract.alerts.sample_policies import rested
from tests.contract.jobs.sample_jobs import enqueue
from tests.deadlines import scaled

LEASE = 30.0
EVERY = 5.0
SECONDS_MAX = scaled(20.0)


def eventually(what: Callable[[], bool]) -> None:
    """A condition with a deadline."""
    waiting = threading.Event()
    for _ in range(int(SECONDS_MAX / 0.02)):
        if what():
            return
        waiting.wait(0.02)
    raise AssertionError("it did not come true")


def dead(store: Store, count: int) -> list[int]:
    """Make dead jobs, and let only the number of dead jobs raise an alert."""
    for name in ("success_rate_low", "success_rate_critical"):
        store.alert_policy_put(replace(DEFAULTS[name], threshold=0.0), "ana")
    return rested(store, failed=count)


def test_what_is_wrong_is_told_to_everybody_and_so_is_its_end(store: Store, clock: StoreClock) -> None:
    """M2: for plain jobs, by the defaults; a warning pages nobody."""
    with http_receiver() as hook, http_receiver() as pager, mail_receiver(MailReceiver()) as mail:
        options = SinkOptions(
            source="shop",
            webhook_url=hook.url,
            pager_url=pager.url,
            pager_key="R0",
            mail_server=mail.address,
            mail_security="none",
            mail_sender="detent@example.org",
            mail_recipients=("ana@example.org",),
        )
        with closing(Alerts(store, options, LEASE)) as alerts:
            ids = dead(store, 101)
            alerts.run(0.0)
            hook.wait_for(2)
            pager.wait_for(1)
            eventually(lambda: len(mail.mails) == 2)
            assert [text.partition(":")[0] for text in hook.texts] == ["WARNING", "CRITICAL"]
            store.job_discard(ids, "ana")
            clock.advance(300)
            alerts.run(3 * EVERY)
            hook.wait_for(4)
            pager.wait_for(2)
            eventually(lambda: len(mail.mails) == 4)
        assert [one["event_action"] for one in pager.posted] == ["trigger", "resolve"]
        assert [text.split()[0] for text in hook.texts[2:]] == ["RESOLVED"] * 2


def test_a_sink_that_does_not_answer_keeps_nobody_waiting(store: Store, clock: StoreClock) -> None:
    """M2: neither the other sinks, nor the service, nor the end of its worker."""
    with http_receiver() as hook, http_receiver() as pager:
        pager.hold = threading.Event()
        options = SinkOptions(webhook_url=hook.url, pager_url=pager.url, pager_key="R0", timeout=SECONDS_MAX)
        with closing(Alerts(store, options, LEASE)) as alerts:
            store.alert_raise("low", "", "critical", "low")
            alerts.run(0.0)
            hook.wait_for(1)
            store.alert_resolve("low", "", "well")
            alerts.run(EVERY)
            hook.wait_for(2)
            assert pager.posted == []
        pager.hold.set()
        assert [row.state for row in store.alert_deliveries("low", "") if row.sink == "webhook"] == ["sent"] * 2


def test_two_workers_tell_it_once(store: Store, store_url: str, clock: StoreClock) -> None:
    """M2: the lease of the service saves work; what is taken is taken by one of them even without it."""
    with http_receiver() as hook:
        options = SinkOptions(webhook_url=hook.url, minute_max=100)
        stores = [another_store(store_url, clock) for _ in range(2)]
        both = [Alerts(one, options, LEASE) for one in stores]
        dead(store, 101)
        gate = threading.Barrier(2)

        def work(alerts: Alerts) -> None:
            for turn in range(4):
                gate.wait()
                alerts.run(turn * 3 * EVERY)

        threads = [threading.Thread(target=work, args=(one,)) for one in both]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        hook.wait_for(2)
        eventually(lambda: not store.alert_figures("undelivered", "whole", 0))
        for one in both:
            one.close()
        for one_store in stores:
            one_store.close()
        assert len(hook.posted) == 2
        assert len(store.transitions("alert", "dead_letters_many")) == 1


def test_it_is_one_of_the_services(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    """M2: without any setting the log hears of it."""
    options = WorkerOptions(app="shop:app", name="ana", lease=LEASE)
    services = ServiceSet(store, options, 7, TurnableClock(START))
    store.alert_raise("low", "", "warning", "low")
    with caplog.at_level(logging.INFO, "detent.alerts"):
        services.tick_alone(0.0)
        eventually(lambda: "WARNING: low: low" in caplog.text)
    eventually(lambda: not store.alert_figures("undelivered", "whole", 0))
    services.close()


def test_people_are_reminded(store: Store, clock: StoreClock) -> None:
    """M2: after hours, where nobody looks after it."""
    with http_receiver() as hook:
        options = SinkOptions(webhook_url=hook.url, remind_hours=2)
        with closing(Alerts(store, options, LEASE)) as alerts:
            store.alert_raise("low", "", "warning", "low")
            store.alert_raise("looked_after", "", "warning", "low")
            store.alert_ack("looked_after", "", "ana")
            alerts.run(0.0)
            hook.wait_for(2)
            clock.advance(7200)
            alerts.run(7200.0)
            hook.wait_for(3)
        assert hook.texts[2] == "STILL WARNING after 2 h: low: low"


def walk(invariants: Invariants) -> None:
    while not invariants.step():
        pass


def test_a_violated_invariant_is_an_alert_until_it_holds(store: Store, store_url: str) -> None:
    """R2, M2: one for each invariant, resolved by a walk that finds it whole."""
    for _ in range(3):
        enqueue(store)
    invariants = Invariants(store, rows_max=2)
    with closing(plain_connection(store_url)) as by_hand:
        by_hand.execute(f"DELETE FROM {table(store_url, 'ready')}")
        by_hand.commit()
    walk(invariants)
    walk(invariants)
    (row,) = store.alert_list()
    assert (row.id, row.state, row.severity) == (
        *("invariant_violated/invariant:pending_is_queued_once", "firing", "critical"),
    )
    assert row.value == 3
    assert store.repair("ana", "lost", apply=True) != []
    walk(invariants)
    assert store.alert_list()[0].state == "resolved"
