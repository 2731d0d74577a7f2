"""Three schedulers at once, over every change of the clocks and a stop of three hours: exactly the documented ticks."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import groupby

import pytest

from detent.model.ids import ReservedIds
from detent.schedule.due_ticks import fire_due
from detent.store.contract import Store
from detent.store.jobs.filters import JobSearch
from detent.testing.stores import StoreClock, plain_connection, table
from tests.schedule.changes import CHANGES
from tests.schedule.schedulers import schedulers, ticks, weekly

START = datetime(2026, 1, 5, 0, 0, tzinfo=UTC)
STOP = timedelta(hours=3)


def test_over_every_change_of_the_clocks(store: Store, store_url: str, clock: StoreClock) -> None:
    """J11, L3: each tick makes one job, however many schedulers look, and again they find nothing to do."""
    with schedulers(store_url, clock) as three:
        for start, changes in groupby(CHANGES, key=lambda change: change.start):
            clock.set(start)
            expected = {str(change): list(change.ticks) for change in changes}
            for change in CHANGES:
                if change.start == start:
                    weekly(store, str(change), change.cron, change.zone)
            while clock.now() < start + timedelta(hours=69):
                clock.advance(timedelta(hours=3))
                three.fire()
                assert three.fire() == []
            assert {name: ticks(store, name) for name in expected} == expected
            for name in expected:
                store.schedule_remove(name, "ana")


@pytest.mark.parametrize(
    ("catch_up", "late", "expected"),
    [
        ("all", 20, ["00:30", "01:00", "01:30", "02:00", "02:30", "03:00"]),
        ("latest", 20, ["03:00"]),
        ("skip", 20, ["03:00"]),
        ("latest", 600, ["03:00"]),
        ("skip", 600, []),
    ],
)
def test_a_stop_of_three_hours(
    store: Store, store_url: str, clock: StoreClock, catch_up: str, late: int, expected: list[str]
) -> None:
    """J11: what was missed follows the schedule's policy, and after it everything goes on as ever."""
    clock.set(START)
    weekly(store, "half", "*/30 * * * *", "UTC", catch_up)
    with schedulers(store_url, clock) as three:
        clock.set(START + STOP + timedelta(seconds=late))
        assert len(three.fire()) == len(expected)
        assert [tick[11:16] for tick in ticks(store, "half")] == expected
        clock.set(START + STOP + timedelta(minutes=30, seconds=1))
        three.fire()
        assert [tick[11:16] for tick in ticks(store, "half")] == [*expected, "03:30"]
    assert store.verify() == []


def test_more_than_one_transaction_takes_is_dealt_with_in_portions(store: Store, clock: StoreClock) -> None:
    """J11: however long the stop was, the newest tick fires, once."""
    clock.set(START)
    weekly(store, "minutely", "* * * * *", "UTC", "latest")
    clock.set(START + timedelta(days=2))
    assert len(fire_due(store, ReservedIds(store.ids_reserve))) == 1
    assert ticks(store, "minutely") == ["2026-01-07T00:00:00"]


def test_a_schedule_that_cannot_be_read_here_does_not_stop_the_others(
    store: Store, store_url: str, clock: StoreClock
) -> None:
    """Another machine may know zones that this one does not."""
    clock.set(START)
    weekly(store, "a broken one", "*/30 * * * *", "UTC")
    weekly(store, "one that is well", "*/30 * * * *", "UTC")
    connection = plain_connection(store_url)
    connection.execute(f"UPDATE {table(store_url, 'schedule')} SET zone = 'Mars/Olympus' WHERE name LIKE '%broken%'")
    connection.commit()
    connection.close()
    clock.set(START + timedelta(minutes=30))
    with schedulers(store_url, clock) as three:
        assert len(three.fire()) == 1
    assert len(store.job_list(JobSearch()).rows) == 1
