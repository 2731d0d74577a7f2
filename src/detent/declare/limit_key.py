"""The key of a limit as a function of a job's arguments: one limit for each shop, each account, each host."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from typing import Any

from detent.errors import InvalidInput, InvalidSetting
from detent.model import jsondoor

__all__ = ["KeyOf", "check_function", "given_to", "key_for"]

KeyOf = Callable[..., str]


def check_function(
    setting: str, function: Callable[..., object], parameters: Collection[str]
) -> tuple[str, ...] | None:
    """Which of the task's parameters the function asks for, by their names; None is all of them. `InvalidSetting` where
    it asks for something else."""
    if inspect.iscoroutinefunction(function):
        raise InvalidSetting(setting, "an async function", "a plain function of the arguments")
    try:
        asked = inspect.signature(function).parameters.values()
    except (TypeError, ValueError) as error:
        raise InvalidSetting(setting, f"a function without a signature: {error}"[:200], _ASKED) from None
    for one in asked:
        if one.kind is inspect.Parameter.VAR_KEYWORD:
            continue
        known = one.name in parameters or one.default is not inspect.Parameter.empty
        if one.kind not in (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY) or not known:
            found = f"the parameter {one.name!r}; the task has {', '.join(parameters) or 'none'}"
            raise InvalidSetting(setting, found[:200], _ASKED)
    if any(one.kind is inspect.Parameter.VAR_KEYWORD for one in asked):
        return None
    return tuple(one.name for one in asked if one.name in parameters)


def given_to(asked: tuple[str, ...] | None, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """Those of a job's arguments that a function asks for."""
    return arguments if asked is None else {name: arguments[name] for name in asked if name in arguments}


def key_for(function: KeyOf, given: Mapping[str, Any], *, bytes_max: int) -> str:
    """The key of a job with these arguments. `InvalidInput` where the function fails, or gives no key."""
    try:
        key: object = function(**given)
    except Exception as error:
        raise InvalidInput(
            "limit_key", f"its function raised {type(error).__name__}: {error}"[:200], _ALLOWED
        ) from error
    if not isinstance(key, str):
        found = f"its function gave {key!r}"[:80] + f", a value of type {type(key).__name__}"
        raise InvalidInput("limit_key", found, "text, such as f'shop:{shop_id}'")
    return jsondoor.text(key, field="limit_key", bytes_max=bytes_max)


_ASKED = "a plain function of the task's own parameters, by their names"
_ALLOWED = "a function of the task's own parameters, by their names, that gives a text"
