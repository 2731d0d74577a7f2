"""alert_raise: something is wrong, said once however many say it."""

from __future__ import annotations

import threading

import pytest

from detent.model.alert_records import AlertRow
from detent.model.records import Moved
from detent.store.contract import Store, Verbs
from detent.testing.stores import StoreClock, another_store
from tests.contract.alerts.sample_notices import notices


def test_raised_by_a_person(store: Store) -> None:
    """E4, R1: the reason takes the place of the message on record."""
    store.alert_raise("disk", "", "warning", "90 % full", actor="ana", reason="seen on the console")
    (line,) = store.transitions("alert", "disk")
    assert (line.actor, line.reason) == ("ana", "seen on the console")
    assert store.alert_list()[0].message == "90 % full"


def test_it_fires_on_record_and_is_to_be_told(store: Store, clock: StoreClock, store_url: str) -> None:
    """M2, E4: with who, when and the facts."""
    raised = store.alert_raise("run_partial", "run:7", "warning", "20 of 200 failed", '{"failed":20}', 20.0)
    assert raised == Moved("run_partial/run:7", "firing", True)
    (row,) = store.alert_list()
    assert row == AlertRow(
        policy="run_partial",
        scope="run:7",
        severity="warning",
        state="firing",
        episode=1,
        message="20 of 200 failed",
        facts='{"failed":20}',
        value=20.0,
        raised=1,
        since=clock.now(),
        last_at=clock.now(),
        notified_at=clock.now(),
        resolved_at=None,
        acknowledged_at=None,
        acknowledged_by=None,
        acknowledged_reason=None,
    )
    (line,) = store.transitions("alert", "run_partial/run:7")
    assert (line.from_state, line.to_state, line.trigger, line.actor) == (None, "firing", "raise", "system")
    assert (line.reason, line.metadata) == ("20 of 200 failed", '{"failed":20}')
    assert notices(store_url) == [("run_partial", "run:7", 1, "firing")]


def test_what_fires_already_is_only_counted(store: Store, clock: StoreClock, store_url: str) -> None:
    """M2: no storms."""
    store.alert_raise("dead_letters", "", "warning", "51 dead letters", None, 51)
    since = clock.now()
    clock.advance(10)
    assert store.alert_raise("dead_letters", "", "warning", "60 dead letters", None, 60) == Moved(
        "dead_letters", "firing", False
    )
    (row,) = store.alert_list()
    assert (row.raised, row.since, row.last_at) == (2, since, clock.now())
    assert (row.message, row.value) == ("60 dead letters", 60.0)
    assert len(store.transitions("alert", "dead_letters")) == 1
    assert len(notices(store_url)) == 1


def test_after_it_was_resolved_it_fires_anew(store: Store, clock: StoreClock, store_url: str) -> None:
    """M2: in an episode of its own, that nobody has acknowledged."""
    store.alert_raise("dead_letters", "", "warning", "51 dead letters")
    store.alert_ack("dead_letters", "", "ana", "on it")
    store.alert_resolve("dead_letters", "", "50 dead letters")
    clock.advance(60)
    assert store.alert_raise("dead_letters", "", "warning", "55 dead letters").changed
    (row,) = store.alert_list()
    assert (row.state, row.episode, row.raised, row.since) == ("firing", 2, 1, clock.now())
    assert (row.resolved_at, row.acknowledged_at, row.acknowledged_by, row.acknowledged_reason) == (None,) * 4
    assert [(line.from_state, line.to_state) for line in store.transitions("alert", "dead_letters")] == [
        (None, "firing"),
        ("firing", "firing"),
        ("firing", "resolved"),
        ("resolved", "firing"),
    ]
    assert [(episode, kind) for _, _, episode, kind in notices(store_url)] == [
        (1, "firing"),
        (1, "resolved"),
        (2, "firing"),
    ]


def test_it_stands_and_falls_with_its_transaction(store: Store, store_url: str) -> None:
    """M2: whoever raises it inside a transaction that fails has raised nothing."""

    def raise_and_fail(verbs: Verbs) -> None:
        verbs.alert_raise("run_partial", "run:7", "warning", "20 of 200 failed")
        raise RuntimeError("no")

    with pytest.raises(RuntimeError):
        store.together(raise_and_fail)
    assert store.alert_list() == []
    assert notices(store_url) == []


def test_many_at_once_raise_it_once(store: Store, clock: StoreClock, store_url: str) -> None:
    """M2, L4: as many callers as there are, one of them begins it."""
    callers = [another_store(store_url, clock) for _ in range(4)]
    gate = threading.Barrier(len(callers))
    began: list[bool] = []

    def caller(mine: Store) -> None:
        for number in range(5):
            gate.wait()
            began.append(mine.alert_raise("run_partial", f"run:{number}", "warning", "failed").changed)

    threads = [threading.Thread(target=caller, args=(one,)) for one in callers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for one in callers:
        one.close()
    assert began.count(True) == 5
    assert sorted(row.raised for row in store.alert_list()) == [4] * 5
    assert len(notices(store_url)) == 5


def test_a_long_message_is_cut(store: Store) -> None:
    store.alert_raise("run_partial", "", "warning", "ä" * 3000)
    assert store.alert_list()[0].message == "ä" * 2000
