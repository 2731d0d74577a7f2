"""Waiting grows, is spread, and never exceeds its cap."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detent.errors import InvalidInput, InvalidSetting
from detent.model.backoff import Retry, retry_after, throttle_delay

NOW = datetime(2026, 10, 21, 7, 28, tzinfo=UTC)
MIDDLE = 0.5  # the draw that adds no jitter


@pytest.mark.parametrize(
    ("attempt", "seconds"), [(1, 2), (2, 4), (3, 8), (4, 16), (5, 32), (6, 64), (7, 64), (10_000, 64)]
)
def test_the_default_waits(attempt: int, seconds: float) -> None:
    """J9: 2 s, 4 s, 8 s, up to 64 s."""
    assert Retry().delay(attempt, MIDDLE) == seconds


def test_jitter_is_twenty_percent_either_way() -> None:
    """J9: ±20 %."""
    assert Retry().delay(1, 0.0) == pytest.approx(1.6)
    assert Retry().delay(1, 0.999_999_999) == pytest.approx(2.4)


def test_three_retries_are_four_executions() -> None:
    """J9: Retry(n) means n retries."""
    assert Retry().attempts_max == 4
    assert Retry(0).attempts_max == 1


@given(
    base=st.floats(0, 1e6),
    factor=st.floats(1, 1000),
    cap=st.floats(0, 1e6),
    jitter=st.floats(0, 1),
    attempt=st.integers(1, 10_001),
    random=st.floats(0, 1, exclude_max=True),
)
def test_a_delay_is_never_negative_and_never_exceeds_the_cap(
    base: float, factor: float, cap: float, jitter: float, attempt: int, random: float
) -> None:
    """J9: jitter never exceeds the cap."""
    assert 0 <= Retry(5, base, factor, cap, jitter).delay(attempt, random) <= cap


@given(st.integers(1, 50), st.floats(1, 3), st.floats(0, 100))
def test_without_jitter_waits_never_shrink(attempt: int, factor: float, base: float) -> None:
    retry = Retry(base=base, factor=factor, jitter=0)
    assert retry.delay(attempt, 0.0) <= retry.delay(attempt + 1, 0.9)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("retries", -1),
        ("retries", 1.5),
        ("retries", True),
        ("retries", 10_001),
        ("base", -0.1),
        ("base", float("nan")),
        ("base", "2"),
        ("factor", 0.5),
        ("factor", float("inf")),
        ("cap", -1),
        ("cap", 1e300),
        ("jitter", 1.01),
        ("jitter", -0.01),
        ("jitter", None),
        ("on", ValueError),
        ("on", (ValueError, "no class")),
        ("fatal", [ValueError]),
        ("fatal", (int,)),
    ],
)
def test_a_setting_out_of_range_is_refused_by_name(field: str, value: Any) -> None:
    with pytest.raises(InvalidSetting) as refusal:
        Retry(**{field: value})
    assert refusal.value.field == field


def test_fatal_wins_over_retryable() -> None:
    """J9: retryable and fatal exception types."""
    retry = Retry(on=(OSError, ValueError), fatal=(FileNotFoundError,))
    assert retry.covers(ConnectionError())
    assert retry.covers(ValueError())
    assert not retry.covers(FileNotFoundError())
    assert not retry.covers(KeyError())
    assert not Retry().covers(KeyboardInterrupt())


def test_a_policy_is_frozen() -> None:
    with pytest.raises(FrozenInstanceError):
        Retry().retries = 9  # type: ignore[misc]


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("0", 0),
        ("120", 120),
        (" 7 ", 7),
        ("1.5", 1.5),
        ("86400", 86_400),
        ("999999999999", 86_400),
        ("Wed, 21 Oct 2026 07:28:30 GMT", 30),
        ("Wed, 21 Oct 2026 07:28:30 -0000", 30),
        ("Wednesday, 21-Oct-26 07:29:00 GMT", 60),
        ("Wed, 21 Oct 2026 09:28:10 +0200", 10),
        ("Wed, 21 Oct 2020 07:28:00 GMT", 0),
        ("Wed, 21 Oct 2099 07:28:00 GMT", 86_400),
    ],
)
def test_retry_after_as_seconds_or_date(header: str, seconds: float) -> None:
    """B5: `Retry-After` in seconds or as a date, from 0 to a day."""
    assert retry_after(header, NOW) == seconds
    assert retry_after(header, NOW.astimezone(timezone(timedelta(hours=-5)))) == seconds


NO_ANSWERS = [
    "",
    " ",
    "soon",
    "-5",
    "+5",
    "1e3",
    "0x10",
    "٣",
    "nan",
    "inf",
    "1,5",
    "1.2.3",
    "9" * 5000,
    "\x00",
    "21 Oct",
]
NO_DATES = ["Wed, 99 Oct 2026 07:28 GMT", "Wed, 21 Oct 99999 07:28:00 GMT", "Wed, 21 Oct 2026 07:28:30 +9999999999"]


@pytest.mark.parametrize("header", [*NO_ANSWERS, *NO_DATES])
def test_a_retry_after_that_says_nothing_is_no_answer(header: str) -> None:
    assert retry_after(header, NOW) is None


@given(st.text(max_size=60) | st.from_regex(r"[A-Z][a-z]{2}, \d{1,3} [A-Z][a-z]{2} \d{1,6} \d\d:\d\d(:\d\d)?.{0,8}"))
def test_no_header_breaks_the_parser(header: str) -> None:
    answer = retry_after(header, NOW)
    assert answer is None or 0 <= answer <= 86_400


def test_a_naive_now_is_refused() -> None:
    with pytest.raises(InvalidInput):
        retry_after("Wed, 21 Oct 2026 07:28:30 GMT", datetime(2026, 10, 21))  # noqa: DTZ001


def test_throttling_waits_16_32_64_seconds() -> None:
    """B5: without `Retry-After` 16 s, 32 s, 64 s."""
    assert [throttle_delay(times) for times in (1, 2, 3, 4, 5_000)] == [16, 32, 64, 64, 64]
