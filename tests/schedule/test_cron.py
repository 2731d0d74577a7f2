"""Ticks over every change of the clocks in 2026, in four zones; and what is no schedule at all."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise

import pytest

from detent.errors import InvalidInput
from detent.schedule.cron import check_cron, next_tick, ticks_after
from tests.schedule.changes import CHANGES, Change


@pytest.mark.parametrize("change", CHANGES, ids=str)
def test_a_fixed_time_ticks_once_a_day(change: Change) -> None:
    """J11: where the moment does not exist, at the first that does; where there are two, at the first of them."""
    found = islice(ticks_after(change.cron, change.zone, change.start), 3)
    assert [tick.isoformat().removesuffix("+00:00") for tick in found] == list(change.ticks)


@pytest.mark.parametrize("change", CHANGES, ids=str)
def test_going_by_minutes_ticks_in_real_time(change: Change) -> None:
    """J11: hours that come twice have twice as many, hours that do not come have none."""
    found = list(islice(ticks_after("*/30 * * * *", change.zone, change.start), 96))
    assert {later - earlier for earlier, later in pairwise(found)} == {timedelta(minutes=30)}


@pytest.mark.parametrize("change", CHANGES, ids=str)
def test_asked_from_any_moment_the_ticks_are_the_same(change: Change) -> None:
    """A scheduler that starts within an hour that comes twice tells no tick again and leaves none out."""
    last = datetime.fromisoformat(change.ticks[-1]).replace(tzinfo=UTC)
    expected = [datetime.fromisoformat(tick).replace(tzinfo=UTC) for tick in change.ticks]
    moment = change.start
    while moment < last:
        assert next_tick(change.cron, change.zone, moment) == next(tick for tick in expected if tick > moment)
        moment += timedelta(minutes=5)


def test_the_second_of_two_equal_times_is_later() -> None:
    """An hour that comes twice is not the same hour."""
    twice = islice(ticks_after("30 * * * *", "Europe/Berlin", datetime(2026, 10, 25, 0, tzinfo=UTC)), 2)
    assert list(twice) == [datetime(2026, 10, 25, 0, 30, tzinfo=UTC), datetime(2026, 10, 25, 1, 30, tzinfo=UTC)]


@pytest.mark.parametrize(
    ("cron", "zone", "field"),
    [
        ("", "UTC", "cron"),
        ("* * * *", "UTC", "cron"),
        ("0 0 2 * * *", "UTC", "cron"),
        ("60 * * * *", "UTC", "cron"),
        ("0 0 30 2 *", "UTC", "cron"),
        ("0 0 * * MON#6", "UTC", "cron"),
        ("@daily", "UTC", "cron"),
        ("0 2 * * *", "Mars/Olympus", "zone"),
        ("0 2 * * *", "", "zone"),
        ("0 2 * * *", "../../etc/passwd", "zone"),
        ("0 2 * * *", "\x00", "zone"),
    ],
)
def test_what_is_no_schedule_is_refused(cron: str, zone: str, field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        check_cron(cron, zone)
    assert refused.value.field == field


def test_a_day_that_comes_every_four_years_is_a_schedule() -> None:
    check_cron("0 0 29 2 *", "Asia/Kolkata")
    assert next_tick("0 0 29 2 *", "UTC", datetime(2026, 1, 1, tzinfo=UTC)).year == 2028
