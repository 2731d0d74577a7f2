"""Arguments of requests, typed by the signatures of the Python surface.

A method such as `Queues.pause(name, *, actor, reason)` becomes a struct with the fields of its arguments. Requests are
decoded into that struct, and the description of the API shows it. So each argument is declared once, in Python.
"""

from __future__ import annotations

import inspect
import re
import types
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Union, get_args, get_origin, get_type_hints

import msgspec
from starlette.datastructures import QueryParams

from detent.errors import InvalidInput
from detent.model import json_codec

__all__ = ["NO_ARGUMENTS", "arguments_of", "read_body", "read_query"]

_LISTS = (Iterable, Collection, list, tuple)
_TRUE, _FALSE = ("true", "1", "yes", "on"), ("false", "0", "no", "off")

NO_ARGUMENTS = msgspec.defstruct("NoArguments", [], forbid_unknown_fields=True)
"""The arguments of a verb that has none."""


def arguments_of(name: str, method: Callable[..., Any], *, without: Collection[str]) -> type[msgspec.Struct]:
    """Return a struct with the arguments of a method, except `self` and those in `without`."""
    hints = get_type_hints(method)
    fields: list[tuple[str, Any] | tuple[str, Any, Any]] = []
    for parameter in list(inspect.signature(method).parameters.values())[1:]:
        if parameter.name in without or parameter.kind is parameter.VAR_KEYWORD:
            continue
        kind = _json_type(hints[parameter.name])
        if parameter.default is parameter.empty:
            fields.append((parameter.name, kind))
        else:
            fields.append((parameter.name, kind, parameter.default))
    return msgspec.defstruct(name, fields, kw_only=True, forbid_unknown_fields=True)


def _json_type(hint: Any) -> Any:
    """Return the type that JSON has for an argument of Python: lists for collections, objects for mappings."""
    if get_origin(hint) in (Union, types.UnionType):
        members = [_json_type(one) for one in get_args(hint)]
        if set(members) == {int, str}:
            return str
        return Union[tuple(members)]  # noqa: UP007 - the members are known at run time only
    if get_origin(hint) in (Mapping, dict):
        return dict[str, Any]
    if get_origin(hint) in _LISTS:
        return list[get_args(hint)[0]]  # type: ignore[misc]
    return str if hint is object else hint


def read_query(query: QueryParams, kind: type[msgspec.Struct]) -> dict[str, Any]:
    """Return the arguments in the query of a URL. `InvalidInput`."""
    values: dict[str, Any] = {}
    for field in msgspec.structs.fields(kind):
        given = query.getlist(field.name)
        if not given:
            continue
        plain = _without_none(field.type)
        if get_origin(plain) is list:
            values[field.name] = given
        elif len(given) > 1:
            raise InvalidInput(field.name, f"{len(given)} values", "one value")
        elif get_origin(plain) is dict:
            values[field.name] = _object(field.name, given[0])
        elif plain is bool:
            values[field.name] = _flag(field.name, given[0])
        else:
            values[field.name] = given[0]
    for name in query:
        if name not in kind.__struct_fields__:
            raise InvalidInput(name, "an unknown argument", ", ".join(kind.__struct_fields__) or "no argument")
    return _convert(values, kind, strict=False)


def read_body(body: bytes, kind: type[msgspec.Struct]) -> dict[str, Any]:
    """Return the arguments in the JSON object of a request; an empty body has none. `InvalidInput`."""
    try:
        values = msgspec.json.decode(body) if body else {}
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidInput("body", json_codec.malformed(error), "a JSON object") from None
    except RecursionError:
        raise InvalidInput("body", "JSON that is nested too deeply", "fewer levels") from None
    if not isinstance(values, dict):
        raise InvalidInput("body", f"a JSON {type(values).__name__}", "a JSON object")
    return _convert(values, kind, strict=True)


def _convert(values: dict[str, Any], kind: type[msgspec.Struct], *, strict: bool) -> dict[str, Any]:
    try:
        return msgspec.structs.asdict(msgspec.convert(values, kind, strict=strict))
    except msgspec.ValidationError as error:
        raise _refusal(str(error), kind) from None


def _refusal(message: str, kind: type[msgspec.Struct]) -> InvalidInput:
    """Return the error for what msgspec says: "Expected `int`, got `str` - at `$.limit`"."""
    fault, _, place = message.partition(" - at `$.")
    field, names = place.rstrip("`"), ", ".join(kind.__struct_fields__) or "no argument"
    if found := re.fullmatch(r"Object contains unknown field `(.+)`", fault):
        return InvalidInput(found[1], "an unknown argument", names)
    if found := re.fullmatch(r"Object missing required field `(.+)`", fault):
        return InvalidInput(found[1], "nothing", "a value: it is required")
    if found := re.fullmatch(r"Expected (.+), got (.+)", fault):
        return InvalidInput(field, found[2], found[1])
    if field and "datetime" in fault:
        return InvalidInput(field, "text that is not a time", "a time such as 2026-11-18T09:30:00Z")
    return InvalidInput(field or "arguments", fault, "a value that fits its declared type" if field else names)


def _without_none(kind: Any) -> Any:
    if get_origin(kind) in (Union, types.UnionType):
        rest = [one for one in get_args(kind) if one is not type(None)]
        return rest[0] if len(rest) == 1 else Union[tuple(rest)]  # noqa: UP007
    return kind


def _object(field: str, text: str) -> dict[str, Any]:
    try:
        found = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise InvalidInput(field, text[:80], "a JSON object")
    return found


def _flag(field: str, text: str) -> bool:
    if text.lower() in _TRUE:
        return True
    if text.lower() in _FALSE:
        return False
    raise InvalidInput(field, text[:80], "true or false")
