"""What a batch must be to be declared, and what becomes of its values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from detent import Change, Retry
from detent.declare.batch import Batch, BatchOptions
from detent.declare.limit import Limit
from detent.declare.settings import Settings
from detent.errors import InvalidArguments, InvalidInput, InvalidPayload, InvalidSetting


@dataclass
class Price:
    amount: int
    currency: str = "EUR"


@dataclass
class Reprice:
    category: str
    tags: list[str] = field(default_factory=list)

    def targets(self) -> list[str]:
        return []

    def preview(self, ref: str) -> Change[Price]:
        return Change(before=Price(1), after=Price(2))

    def apply(self, ctx: Any, ref: str, change: Change[Price]) -> None: ...


def batch(kind: type[Any] = Reprice, **options: Any) -> Batch:
    return Batch(kind, name="reprice", aliases=(), options=BatchOptions(**options), settings=Settings())


def test_its_fields_come_back_as_they_were() -> None:
    """B2"""
    value = Reprice("rings", ["gold"])
    assert batch().decode(batch().encode(value)) == value


def test_a_change_comes_back_as_its_preview_declares_it() -> None:
    """B2"""
    before, after, changed = batch().encode_change("ring-1", Change(before=Price(100), after=Price(90)))
    assert changed
    found = batch().change({"amount": 100, "currency": "EUR"}, {"amount": 90, "currency": "EUR"})
    assert found == Change(before=Price(100), after=Price(90))
    assert (before, after) == ('{"amount":100,"currency":"EUR"}', '{"amount":90,"currency":"EUR"}')


def test_values_that_differ_only_in_the_order_of_their_keys_are_no_change() -> None:
    _, _, changed = batch().encode_change("r", Change(before={"a": 1, "b": 2}, after={"b": 2, "a": 1}))
    assert not changed


def test_its_fingerprint_follows_its_fields_and_its_version() -> None:
    @dataclass
    class Other(Reprice):
        percent: int = 5

    assert batch().fingerprint == batch(chunk=7, retry=Retry(0)).fingerprint
    assert len({batch().fingerprint, batch(version="2").fingerprint, batch(Other).fingerprint}) == 3


class NotADataclass:
    pass


@dataclass
class WithoutApply:
    def targets(self) -> list[str]:
        return []

    def preview(self, ref: str) -> Any: ...


@dataclass
class AppliesWithoutContext(Reprice):
    def apply(self, ref: str, change: Any) -> None: ...  # type: ignore[override]


@dataclass
class WithASocket(Reprice):
    socket: Exception | int = 0


@pytest.mark.parametrize(
    ("kind", "found"),
    [
        (NotADataclass, "no dataclass"),
        (WithoutApply, "a batch without apply"),
        (AppliesWithoutContext, r"apply\(self"),
        (WithASocket, "JSON cannot carry"),
    ],
)
def test_what_cannot_be_a_batch_is_refused_where_it_is_declared(kind: type[Any], found: str) -> None:
    with pytest.raises(InvalidSetting, match=found):
        batch(kind)


@pytest.mark.parametrize(
    "options",
    [
        {"tolerate": -1},
        {"tolerate": 1.0},
        {"tolerate": True},
        {"tolerate": float("nan")},
        {"chunk": 0},
        {"chunk": True},
        {"limit_key": "shop"},
        {"timeout": -1},
        {"version": 2},
    ],
)
def test_options_out_of_range_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        batch(**options)


def test_a_share_and_a_count_are_told_apart() -> None:
    """B9"""
    assert BatchOptions(tolerate=5).tolerated == (5, None)
    assert BatchOptions(tolerate=0.02).tolerated == (None, 0.02)
    assert BatchOptions().tolerated == (None, None)


def test_fields_that_do_not_fit_are_refused() -> None:
    with pytest.raises(InvalidArguments, match="category"):
        batch().encode(Reprice(category=7))  # type: ignore[arg-type]


@pytest.mark.parametrize("change", [None, ("a", "b"), {"before": 1, "after": 2}])
def test_a_preview_that_gives_no_change_is_refused(change: object) -> None:
    with pytest.raises(InvalidPayload, match="a Change"):
        batch().encode_change("ring-1", change)


def test_a_change_that_would_not_fit_into_a_job_is_refused() -> None:
    big = "x" * 600_000
    with pytest.raises(InvalidPayload, match="payload_max"):
        batch().encode_change("ring-1", Change(before=big, after=big + "y"))


def test_each_target_may_have_a_limit_of_its_own() -> None:
    """B5"""
    one = batch(limit=Limit(rate=2), limit_key=lambda value, ref: f"shop:{value.category}")
    assert one.limit_key_of(Reprice("rings"), "ring-1") == "shop:rings"
    assert batch(limit=Limit(rate=2)).limit_key_of(Reprice("rings"), "ring-1") is None
    with pytest.raises(InvalidInput, match="limit_key"):
        batch(limit=Limit(rate=2), limit_key=lambda value, ref: 7).limit_key_of(Reprice("rings"), "ring-1")
