"""alert_take: what a sink is to be told now."""

from __future__ import annotations

import threading

from detent.model.alert_records import DeliveryOutcome
from detent.store.contract import Store
from detent.testing.stores import StoreClock, another_store
from tests.contract.alerts.sample_policies import ALL


def raised(store: Store, count: int) -> None:
    for number in range(count):
        store.alert_raise("low", f"task:{number}", "warning", f"low {number}", '{"n":1}', 0.5)
    store.alert_spread([ALL])


def numbers(store: Store, *, minute_max: int = 10, limit: int = 100, seconds: float = 60) -> list[int]:
    return [one.notice.n for one in store.alert_take("hook", minute_max, limit, seconds)[0]]


def test_in_the_order_it_happened_with_all_there_is_to_say(store: Store, clock: StoreClock) -> None:
    """M2"""
    store.alert_raise("low", "queue:mail", "warning", "low", '{"n":1}', 0.5)
    since = clock.now()
    clock.advance(5)
    store.alert_resolve("low", "queue:mail", "well again")
    store.alert_spread([ALL])
    (first, second), room = store.alert_take("hook", 10, 100, 60)
    assert room == 10
    assert (first.notice.kind, first.notice.message, first.notice.at, first.tries) == ("firing", "low", since, 1)
    assert (second.notice.kind, second.notice.message, second.notice.at) == ("resolved", "well again", clock.now())
    for one in (first.notice, second.notice):
        assert (one.policy, one.scope, one.episode, one.severity, one.since) == (
            *("low", "queue:mail", 1, "warning", since),
        )
        assert (one.facts, one.value, one.alert_id) == ('{"n":1}', 0.5, "low/queue:mail")


def test_nobody_else_gets_them_until_their_time_is_over(store: Store, clock: StoreClock) -> None:
    """M2: told once, and again only where whoever took them has died."""
    raised(store, 3)
    taken = numbers(store, limit=2)
    assert len(taken) == 2
    assert numbers(store) == []
    clock.advance(60)
    again, _ = store.alert_take("hook", 10, 100, 60)
    assert [one.notice.n for one in again][:2] == taken
    assert [one.tries for one in again] == [2, 2, 1]


def test_what_was_told_is_not_told_again(store: Store, clock: StoreClock) -> None:
    """M2"""
    raised(store, 2)
    first, second = numbers(store)
    store.alert_outcomes_put(
        "hook", [DeliveryOutcome(notice_n=first, state="sent"), DeliveryOutcome(notice_n=second, state="summarised")]
    )
    clock.advance(3600)
    assert numbers(store) == []


def test_only_so_many_messages_in_a_minute(store: Store, clock: StoreClock) -> None:
    """M2, G6: no storms; a summary is one message."""
    raised(store, 6)
    found, room = store.alert_take("hook", 3, 100, 60)
    assert (len(found), room) == (6, 3)
    sent = [
        DeliveryOutcome(notice_n=one.notice.n, state="sent" if at < 3 else "summarised") for at, one in enumerate(found)
    ]
    store.alert_outcomes_put("hook", sent)
    store.alert_raise("more", "", "warning", "more")
    store.alert_spread([ALL])
    assert store.alert_take("hook", 3, 100, 60) == ([], 0)
    clock.advance(60)
    found, room = store.alert_take("hook", 3, 100, 60)
    assert (len(found), room) == (1, 3)


def test_what_comes_after_one_that_waits_stays_after_it(store: Store, clock: StoreClock) -> None:
    """M2: a sink that is down gets everything in order later."""
    raised(store, 1)
    (first,) = numbers(store)
    store.alert_outcomes_put("hook", [DeliveryOutcome(notice_n=first, state="pending", error="no answer", delay=30)])
    store.alert_raise("more", "", "warning", "more")
    store.alert_spread([ALL])
    assert numbers(store) == []
    clock.advance(30)
    assert numbers(store)[0] == first


def test_of_two_at_once_one_gets_them(store: Store, clock: StoreClock, store_url: str) -> None:
    """M2: any number of workers may deliver."""
    raised(store, 5)
    stores = [another_store(store_url, clock) for _ in range(3)]
    gate = threading.Barrier(3)
    taken: list[int] = []

    def take(mine: Store) -> None:
        gate.wait()
        taken.append(len(mine.alert_take("hook", 10, 100, 60)[0]))

    threads = [threading.Thread(target=take, args=(one,)) for one in stores]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for one in stores:
        one.close()
    assert sorted(taken) == [0, 0, 5]
