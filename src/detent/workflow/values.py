"""Values and errors of steps, as they are recorded."""

from __future__ import annotations

import sys
import typing
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import msgspec

from detent.errors import DetentError, InvalidPayload
from detent.model import json_codec

__all__ = ["StepError", "decode_value", "encode_error", "raise_recorded", "return_type"]

_MESSAGE_MAX = 2000


class StepError(DetentError):
    """A step failed in an earlier attempt with an error whose class is no longer known."""


class _RecordedError(msgspec.Struct, frozen=True):
    module: str
    name: str
    message: str


def encode_error(error: BaseException) -> str:
    """Return an error that the function has caught, as JSON: its class and its message."""
    kind = type(error)
    message = str(error).encode(errors="replace").decode().replace("\0", "")[:_MESSAGE_MAX]
    return msgspec.json.encode(_RecordedError(kind.__module__, kind.__qualname__, message)).decode()


def raise_recorded(text: str) -> typing.NoReturn:
    """Raise a recorded error. It has its class and message, and none of its other attributes."""
    found = msgspec.json.decode(text, type=_RecordedError)
    kind: Any = sys.modules.get(found.module)
    for part in found.name.split("."):
        kind = getattr(kind, part, None)
    if isinstance(kind, type) and issubclass(kind, Exception):
        error = kind.__new__(kind)
        error.args = (found.message,)
        raise error
    raise StepError(f"{found.module}.{found.name}: {found.message}")


def return_type(fn: Callable[..., Any]) -> Any:
    """Return the type to which the values of a function are decoded: its return annotation, or Any."""
    while isinstance(fn, partial):
        fn = fn.func
    try:
        return _return_type(getattr(fn, "__func__", fn))
    except TypeError:  # not hashable
        return Any


@lru_cache(maxsize=4096)
def _return_type(fn: Callable[..., Any]) -> Any:
    try:
        hint = typing.get_type_hints(fn, include_extras=True).get("return", Any)
        json_codec.reader(hint)
    except (NameError, TypeError, AttributeError):
        return Any
    return Any if hint is None or isinstance(hint, typing.TypeVar) else hint


def decode_value(text: str | None, kind: Any, path: str, adapt: Callable[[Any], Any] | None = None) -> Any:
    """Return a recorded value as `kind`. If it no longer fits, `adapt` converts it; without one, `InvalidPayload`."""
    if text is None or text == "null":
        return None
    try:
        return json_codec.decode(text, kind, field=f"recorded value of step {path!r}")
    except InvalidPayload:
        if adapt is None:
            raise
        return adapt(json_codec.decode(text))
