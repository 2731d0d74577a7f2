"""schedule_put: make a schedule, or change the one of that name."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec

from detent.model.records import Moved
from detent.model.service_records import ScheduleRow
from detent.store.contract import Store
from detent.testing.stores import START, StoreClock
from tests.contract.refusals import Untouched
from tests.contract.schedules.sample_schedules import FIRST, line, schedule


def test_a_new_one_stands_as_it_was_said(store: Store, clock: StoreClock) -> None:
    """J11"""
    clock.advance(1)
    item = schedule(tenant="t", priority=-3, dead_letter=False, idempotent=False, catch_up="all", cost=3)
    row = store.schedule_put(item)
    pause: dict[str, Any] = {"last_at": None, "paused_at": None, "paused_by": None, "reason": None}
    assert row == ScheduleRow(**msgspec.structs.asdict(item), **pause, changed_at=clock.now())
    assert store.schedule_list() == [row]
    assert line(store) == [(None, "active", "create", "client", None)]


def test_who_changed_it_is_on_record(store: Store) -> None:
    """E4, R1"""
    store.schedule_put(schedule(), "ana", "a new report")
    store.schedule_put(schedule(cost=4), "ben", None)
    assert line(store) == [
        (None, "active", "create", "ana", "a new report"),
        ("active", "active", "change", "ben", None),
    ]


def test_the_same_again_changes_nothing(store: Store, clock: StoreClock, untouched: Untouched) -> None:
    """L3: every start of an application says it again; what it would make of the next tick does not count."""
    store.schedule_put(schedule())
    clock.advance(1)
    with untouched():
        store.schedule_put(schedule(next_at=FIRST + timedelta(days=1)))


def test_other_words_keep_the_next_tick_and_the_pause(store: Store, clock: StoreClock) -> None:
    store.schedule_put(schedule())
    store.schedule_pause("nightly", "ana")
    clock.advance(1)
    row = store.schedule_put(schedule(catch_up="all", next_at=FIRST + timedelta(days=1)))
    assert (row.catch_up, row.next_at, row.paused_by, row.changed_at) == ("all", FIRST, "ana", clock.now())
    assert line(store)[-1][:3] == ("paused", "paused", "change")


def test_another_cost_is_a_change(store: Store) -> None:
    store.schedule_put(schedule(cost=3))
    assert store.schedule_put(schedule(cost=4)).cost == 4
    assert store.schedule_put(schedule()).cost is None
    assert [trigger for _, _, trigger, _, _ in line(store)] == ["create", "change", "change"]


def test_other_times_begin_anew(store: Store, clock: StoreClock) -> None:
    store.schedule_put(schedule())
    assert store.schedule_put(schedule(zone="Asia/Kolkata", next_at=START)).next_at == START
    assert store.schedule_put(schedule(cron="5 * * * *", next_at=FIRST)).next_at == FIRST


def test_a_removed_one_may_come_again(store: Store, clock: StoreClock) -> None:
    store.schedule_put(schedule())
    assert store.schedule_remove("nightly", "ana") == Moved("nightly", "removed", True)
    store.schedule_put(schedule())
    assert [one[1] for one in line(store)] == ["active", "removed", "active"]
