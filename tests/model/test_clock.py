"""Time is exact, aware and never goes back."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detent.errors import InvalidInput
from detent.model.clock import Clock, SystemClock, TurnableClock, from_micros, to_micros

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
ZONES = st.sampled_from([UTC, timezone(timedelta(hours=5, minutes=45)), timezone(-timedelta(hours=9))])


@given(st.datetimes(timezones=ZONES))
def test_micros_are_exact_over_the_whole_calendar(moment: datetime) -> None:
    try:
        expected = moment.astimezone(UTC)
    except OverflowError:  # the first and last hours of the calendar do not exist in UTC
        with pytest.raises(InvalidInput, match="between the years 1 and 9999 in UTC"):
            to_micros(moment, field="due_at")
        return
    assert from_micros(to_micros(moment, field="due_at")) == expected


@pytest.mark.parametrize(
    ("moment", "micros"),
    [
        (datetime(1970, 1, 1, tzinfo=UTC), 0),
        (datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC), -1),
        (datetime(2038, 1, 19, 3, 14, 8, 1, tzinfo=UTC), 2_147_483_648_000_001),
        (datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC), 253_402_300_799_999_999),
    ],
)
def test_micros_of_known_moments(moment: datetime, micros: int) -> None:
    assert to_micros(moment, field="due_at") == micros
    assert from_micros(micros) == moment


@pytest.mark.parametrize("value", [datetime(2026, 1, 1), date(2026, 1, 1), "2026-01-01", None])  # noqa: DTZ001
def test_a_naive_time_is_refused_by_name(value: object) -> None:
    """S3: a time without a zone gets an error that names its field."""
    with pytest.raises(InvalidInput) as refusal:
        to_micros(cast(datetime, value), field="due_at")
    assert refusal.value.field == "due_at"
    assert "aware" in refusal.value.allowed


@pytest.mark.parametrize(
    "moment", ["9999-12-31T23:59:59-14:00", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59.999999-00:01"]
)
def test_a_time_outside_of_the_calendar_in_utc_is_refused_by_name(moment: str) -> None:
    """S3: SQLite stored it, and could not read the row again; PostgreSQL failed with OverflowError."""
    with pytest.raises(InvalidInput, match=r"^due_at: found .*; allowed: a time between the years 1 and 9999 in UTC"):
        to_micros(datetime.fromisoformat(moment), field="due_at")


def test_micros_outside_the_calendar_are_refused() -> None:
    for micros in (2**63 - 1, -(2**63), 10**40):
        with pytest.raises(InvalidInput):
            from_micros(micros)


def test_a_turnable_clock_moves_only_when_turned() -> None:
    clock = TurnableClock(NOON)
    assert (clock.now(), clock.monotonic()) == (NOON, 0.0)
    assert clock.advance(1.5) == NOON + timedelta(seconds=1.5)
    clock.advance(timedelta(minutes=1))
    clock.sleep(0.5)
    clock.sleep(-3)
    assert clock.now() == NOON + timedelta(seconds=62)
    assert clock.monotonic() == 62.0
    clock.set(NOON + timedelta(days=1))
    assert clock.now() == NOON + timedelta(days=1)


def test_a_turnable_clock_never_goes_back() -> None:
    clock = TurnableClock(NOON)
    with pytest.raises(InvalidInput):
        clock.set(NOON - timedelta(microseconds=1))
    with pytest.raises(InvalidInput):
        clock.advance(-1)
    with pytest.raises(InvalidInput):
        clock.set(datetime(2030, 1, 1))  # noqa: DTZ001
    assert clock.now() == NOON


def test_a_turnable_clock_speaks_utc_whatever_it_was_set_to() -> None:
    clock = TurnableClock(datetime(2026, 3, 1, 13, tzinfo=timezone(timedelta(hours=1))))
    assert clock.now() == NOON
    assert clock.now().utcoffset() == timedelta(0)


def test_the_system_clock_is_aware_and_does_not_wait_for_nothing() -> None:
    clock: Clock = SystemClock()
    before = clock.monotonic()
    clock.sleep(0)
    clock.sleep(-1)
    assert clock.monotonic() >= before
    assert clock.now().utcoffset() == timedelta(0)
    clock.sleep(1e-6)
    assert clock.monotonic() - before >= 1e-6
