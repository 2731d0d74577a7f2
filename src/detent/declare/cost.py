"""What a job costs the limit of its task: a number, or a function of its arguments."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, TypeGuard

from detent.declare.limit import Limit
from detent.errors import InvalidInput, InvalidSetting

__all__ = ["CostOf", "check_cost", "check_spent", "cost_of", "cost_within"]

CostOf = Callable[..., int]

_SPENT_MAX = 10**9


def check_cost(cost: object, limit: Limit | None) -> None:
    """A declared cost. `InvalidSetting` where it is none, where there is no rate that it could be taken from, or where
    it is more than the bucket can ever hold."""
    if cost is None:
        return
    if limit is None or limit.rate is None:
        raise InvalidSetting("cost", f"{cost!r:.80} without a rate", "cost together with limit=Limit(rate=…)")
    if callable(cost):
        if limit.burst is None:
            allowed = "limit=Limit(rate=…, burst=…): burst is the most that one job may cost"
            raise InvalidSetting("cost", "a function, and a limit without burst", allowed)
        return
    if not _is_cost(cost):
        raise InvalidSetting("cost", repr(cost)[:80], f"{_WHOLE}, or a function of the arguments that gives one")
    if cost > limit.holds:
        found = f"{cost} where the bucket holds {limit.holds:g}"
        raise InvalidSetting("cost", found, f"at most {limit.holds:g}, or a larger burst of the limit")


def cost_within(cost: object, limit: Limit) -> int:
    """What a function of the arguments gave. `InvalidInput` where it is no cost, or more than the bucket can hold."""
    if not _is_cost(cost):
        raise InvalidInput("cost", f"its function gave {cost!r}"[:80], _WHOLE)
    if cost > limit.holds:
        found = f"its function gave {cost} where the bucket holds {limit.holds:g}"
        raise InvalidInput("cost", found, f"at most {limit.holds:g}, or a larger burst of the limit")
    return cost


def cost_of(function: Callable[..., object], given: Mapping[str, Any], limit: Limit) -> int:
    """What a job with these arguments costs. `InvalidInput` where the function fails, or gives no cost."""
    try:
        cost = function(**given)
    except Exception as error:
        raise InvalidInput("cost", f"its function raised {type(error).__name__}: {error}"[:200], _ALLOWED) from error
    return cost_within(cost, limit)


def check_spent(cost: object) -> float:
    """What an attempt says that it has cost. `InvalidInput`."""
    if isinstance(cost, bool) or not isinstance(cost, int | float) or not math.isfinite(cost):
        raise InvalidInput("cost", repr(cost)[:80], "a number of tokens")
    if not 0 <= cost <= _SPENT_MAX:
        raise InvalidInput("cost", repr(cost)[:80], f"0 to {_SPENT_MAX} tokens")
    return float(cost)


def _is_cost(cost: object) -> TypeGuard[int]:
    return isinstance(cost, int) and not isinstance(cost, bool) and cost >= 1


_WHOLE = "a whole number of tokens, 1 or more"
_ALLOWED = f"a function of the task's own parameters, by their names, that gives {_WHOLE}"
