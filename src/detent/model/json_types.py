"""Which annotations JSON can carry: the check at declaration."""

from __future__ import annotations

import enum
import typing
from typing import Any

from msgspec import inspect

from detent.model.pydantic_models import is_model_type

__all__ = ["fault_of_type"]

_CARRIED = (
    "numbers, strings, lists, dicts with strings as keys, dates, enums, dataclasses, pydantic models and the like"
)
_LISTED = "a list, or a pydantic model with this field"
_TEXT = "text, for instance in base64, or the name of a file"
_ONE_MODEL = "one class; for several kinds, a pydantic `RootModel` of their union, or msgspec Structs with a `tag`"
_FIRST_OF_A_KIND = (str, int, float, bool, list, dict, type(None))


def fault_of_type(hint: Any) -> tuple[str, str, str] | None:
    """Return path, what was found and what is allowed for the first part of an annotation that JSON cannot carry; None
    if there is none. The path leads to a field of a class; it is empty for the annotation itself."""
    if found := _unused_constraint(hint):
        return "", found, "a pydantic model with this field, or `Annotated[…, msgspec.Meta(…)]`"
    try:
        described = inspect.type_info(hint)
    except TypeError as error:
        says = str(error).partition(" - type")[0]
        return "", says, _ONE_MODEL if "unions may not" in says else _CARRIED
    except NameError:
        return None  # a class that names types that do not exist yet
    return _fault_in(described, "", set())


def _unused_constraint(hint: Any) -> str:
    """Return what is wrong with an `Annotated` whose constraint nothing would check; empty if nothing is."""
    if typing.get_origin(hint) is not typing.Annotated or is_model_type(typing.get_args(hint)[0]):
        return ""
    for note in typing.get_args(hint)[1:]:
        if type(note).__module__.partition(".")[0] in ("pydantic", "annotated_types"):
            return f"{type(note).__name__} outside of a model, where pydantic does not check it"
    return ""


def _fault_in(described: Any, path: str, seen: set[type]) -> tuple[str, str, str] | None:
    match described:
        case inspect.CustomType(cls=kind):
            return None if _is_carried(kind) else (path, f"the type {kind.__module__}.{kind.__qualname__}", _CARRIED)
        case inspect.SetType() | inspect.FrozenSetType():
            return path, "a set", _LISTED
        case inspect.BytesType() | inspect.ByteArrayType() | inspect.MemoryViewType():
            return path, "bytes", _TEXT
        case inspect.DictType(key_type=keys):
            if not _is_text(keys):
                return path, "a dict with keys that are not strings", _CARRIED
    if (known := getattr(described, "cls", None)) is not None:
        if known in seen:
            return None
        seen.add(known)
    for step, part in _parts_of(described):
        if (fault := _fault_in(part, path + step, seen)) is not None:
            return fault
    return None


def _parts_of(described: Any) -> list[tuple[str, Any]]:
    """Return the parts of a described type, each with its step of the path."""
    found = [(f".{field.name}", field.type) for field in getattr(described, "fields", ())]
    found += [("[…]", getattr(described, name)) for name in ("item_type", "value_type") if hasattr(described, name)]
    found += [("[…]", part) for part in getattr(described, "item_types", ())]
    return found + [("", part) for part in getattr(described, "types", ())]


def _is_text(described: Any) -> bool:
    match described:
        case inspect.CustomType(cls=kind) | inspect.EnumType(cls=kind):
            return issubclass(kind, str)
        case inspect.LiteralType(values=values):
            return all(isinstance(value, str) for value in values)
    return isinstance(described, inspect.StrType | inspect.AnyType)


def _is_carried(kind: type) -> bool:
    """Return whether values of a class that msgspec does not know are read back as they were."""
    if is_model_type(kind) or issubclass(kind, (str, int, float, enum.Enum)):
        return True
    try:
        return any(issubclass(one, kind) for one in _FIRST_OF_A_KIND)  # object, Hashable, Number
    except TypeError:  # a protocol that cannot be tested
        return False
