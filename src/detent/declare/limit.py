"""Limits: how many jobs may run at once, and how many may start in a period of time."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, TypeGuard

from detent.errors import InvalidInput, InvalidSetting
from detent.model import json_codec
from detent.model.limit_records import NewLimit

__all__ = [
    "CostOf",
    "KeyOf",
    "Limit",
    "check_cost",
    "check_function",
    "check_spent",
    "cost_of",
    "cost_within",
    "given_to",
    "key_for",
]

_CONCURRENCY_MAX = 1_000_000
_LEAST, _MOST = 1e-9, 1e9
"""Bounds of rates and seconds. Without them their quotient may be too large or too small for a number."""
_BURST_SECONDS = 0.1
"""The default burst, in seconds of the rate. A worker that waits for tokens checks twice in this time, so it keeps up
with any rate; a burst of one would slow down a rate of 1,000."""
_SPENT_MAX = 10**9
_WHOLE = "a whole number of tokens, 1 or more"
_OWN_PARAMETERS = "a plain function of the task's own parameters, by their names"

CostOf = Callable[..., int]
KeyOf = Callable[..., str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """A limit for all workers together: at most `concurrency` jobs run at once, `rate` jobs start per `per` seconds.

    `rate` is an average. After a quiet period, up to `burst` jobs may start together; the default is what the rate
    allows in a tenth of a second, and at least 1. So `Limit(rate=10)` starts a job every 0.1 s, and
    `Limit(rate=10, burst=10)` lets 10 start at once and 10 more within the next second. A job counts as one, or as the
    `cost` of its task. `InvalidSetting` for bounds under which no job could start.
    """

    rate: float | None = None
    per: float = 1.0
    burst: float | None = None
    concurrency: int | None = None

    def __post_init__(self) -> None:
        for name in ("rate", "per", "burst"):
            value = getattr(self, name)
            if value is None and name != "per":
                continue
            least = 1.0 if name == "burst" else _LEAST
            if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= _MOST:
                raise InvalidSetting(name, repr(value)[:80], f"a number from {least:g} to {_MOST:g}")
        if self.concurrency is not None and (
            isinstance(self.concurrency, bool)
            or not isinstance(self.concurrency, int)
            or not 1 <= self.concurrency <= _CONCURRENCY_MAX
        ):
            raise InvalidSetting("concurrency", repr(self.concurrency)[:80], f"1 to {_CONCURRENCY_MAX}")

    @property
    def holds(self) -> float:
        """Number of tokens in its bucket when it is full."""
        if self.burst is not None:
            return float(self.burst)
        return float(max(1.0, (self.rate or 0.0) / self.per * _BURST_SECONDS))

    def under(self, key: str, *, tasks: tuple[str, ...] = (), queues: tuple[str, ...] = ()) -> NewLimit:
        """Return the limit under a key, as it is stored."""
        return NewLimit(
            key=key,
            rate=None if self.rate is None else float(self.rate),
            per=float(self.per),
            burst=self.holds,
            concurrency_max=self.concurrency,
            tasks=tasks,
            queues=queues,
        )


def check_cost(cost: object, limit: Limit | None) -> None:
    """Check a declared cost. `InvalidSetting` if it is not a cost, if the limit has no rate, or if it is more than the
    bucket can hold."""
    if cost is None:
        return
    if limit is None or limit.rate is None:
        raise InvalidSetting("cost", f"{cost!r:.80} without a rate", "cost together with limit=Limit(rate=…)")
    if callable(cost):
        if limit.burst is None:
            allowed = "limit=Limit(rate=…, burst=…): burst is the maximum cost of one job"
            raise InvalidSetting("cost", "a function, and a limit without burst", allowed)
        return
    if not _is_cost(cost):
        raise InvalidSetting("cost", repr(cost)[:80], f"{_WHOLE}, or a function of the arguments that returns one")
    if cost > limit.holds:
        found = f"{cost}, but the bucket holds {limit.holds:g}"
        raise InvalidSetting("cost", found, f"at most {limit.holds:g}, or a larger burst of the limit")


def cost_within(cost: object, limit: Limit) -> int:
    """Check a computed cost, and return it. `InvalidInput` if it is not a cost, or more than the bucket can hold."""
    if not _is_cost(cost):
        raise InvalidInput("cost", f"a function that returned {cost!r}"[:80], _WHOLE)
    if cost > limit.holds:
        found = f"a function that returned {cost}, but the bucket holds {limit.holds:g}"
        raise InvalidInput("cost", found, f"at most {limit.holds:g}, or a larger burst of the limit")
    return cost


def cost_of(function: Callable[..., object], given: Mapping[str, Any], limit: Limit) -> int:
    """Return the cost of a job with these arguments. `InvalidInput` if the function fails or returns no cost."""
    try:
        cost = function(**given)
    except Exception as error:
        found = f"a function that raised {type(error).__name__}: {error}"[:200]
        raise InvalidInput("cost", found, f"{_OWN_PARAMETERS}, that returns {_WHOLE}") from error
    return cost_within(cost, limit)


def check_spent(cost: object) -> float:
    """Check the cost that an attempt reports, and return it. `InvalidInput`."""
    if isinstance(cost, bool) or not isinstance(cost, int | float) or not math.isfinite(cost):
        raise InvalidInput("cost", repr(cost)[:80], "a number of tokens")
    if not 0 <= cost <= _SPENT_MAX:
        raise InvalidInput("cost", repr(cost)[:80], f"0 to {_SPENT_MAX} tokens")
    return float(cost)


def _is_cost(cost: object) -> TypeGuard[int]:
    return isinstance(cost, int) and not isinstance(cost, bool) and cost >= 1


def check_function(
    setting: str, function: Callable[..., object], parameters: Collection[str]
) -> tuple[str, ...] | None:
    """Return which parameters of the task the function takes, by name; None for all of them. `InvalidSetting` if it
    takes others."""
    if inspect.iscoroutinefunction(function):
        raise InvalidSetting(setting, "an async function", "a plain function of the arguments")
    try:
        asked = inspect.signature(function).parameters.values()
    except (TypeError, ValueError) as error:
        raise InvalidSetting(setting, f"a function without a signature: {error}"[:200], _OWN_PARAMETERS) from None
    for one in asked:
        if one.kind is inspect.Parameter.VAR_KEYWORD:
            continue
        known = one.name in parameters or one.default is not inspect.Parameter.empty
        if one.kind not in (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY) or not known:
            found = f"the parameter {one.name!r}; the task has {', '.join(parameters) or 'none'}"
            raise InvalidSetting(setting, found[:200], _OWN_PARAMETERS)
    if any(one.kind is inspect.Parameter.VAR_KEYWORD for one in asked):
        return None
    return tuple(one.name for one in asked if one.name in parameters)


def given_to(asked: tuple[str, ...] | None, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return those arguments of a job that a function takes."""
    return arguments if asked is None else {name: arguments[name] for name in asked if name in arguments}


def key_for(function: KeyOf, given: Mapping[str, Any], *, bytes_max: int) -> str:
    """Return the limit key of a job with these arguments. `InvalidInput` if the function fails or returns no key."""
    try:
        key: object = function(**given)
    except Exception as error:
        found = f"a function that raised {type(error).__name__}: {error}"[:200]
        raise InvalidInput("limit_key", found, f"{_OWN_PARAMETERS}, that returns a string") from error
    if not isinstance(key, str):
        found = f"a function that returned {key!r}"[:80] + f", a value of type {type(key).__name__}"
        raise InvalidInput("limit_key", found, "a string, such as f'shop:{shop_id}'")
    return json_codec.text(key, field="limit_key", bytes_max=bytes_max)
