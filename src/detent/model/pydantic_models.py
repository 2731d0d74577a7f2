"""Pydantic models as JSON. Pydantic is imported only if a value or an annotation is one of its models."""

from __future__ import annotations

import sys
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydantic import BaseModel, TypeAdapter

__all__ = ["dumped", "fault_of", "is_model", "is_model_type", "validated"]

_MASKED = "'**********'"
"""How pydantic writes a `SecretStr`. The function of a task would get these asterisks."""


class MaskedSecret(ValueError):
    """A model writes a secret as asterisks."""


def is_model_type(kind: object) -> bool:
    """Return whether a type is a pydantic model."""
    pydantic = sys.modules.get("pydantic")
    return pydantic is not None and isinstance(kind, type) and issubclass(kind, pydantic.BaseModel)


def is_model(value: object) -> bool:
    """Return whether a value is an instance of a pydantic model."""
    return is_model_type(type(value))


def dumped(value: BaseModel) -> Any:
    """Return the fields of a model as JSON values, by their names, without computed fields. `MaskedSecret`."""
    found = value.model_dump(mode="json", round_trip=True, warnings=False)
    if _MASKED in repr(found):
        raise MaskedSecret("a secret that pydantic writes as asterisks")
    return found


def validated(kind: type[BaseModel], text: bytes) -> BaseModel:
    """Return JSON text as a model. Fields are found by name or alias. `ValidationError` of pydantic."""
    found: BaseModel = _adapter(kind).validate_json(text, by_alias=True, by_name=True)
    return found


def fault_of(error: BaseException | None) -> tuple[str, str, str] | None:
    """Return path, what was found and what is allowed for the first fault that pydantic found; None for errors that are
    not pydantic's. Strings are not shown, since they may be secret."""
    pydantic = sys.modules.get("pydantic")
    if pydantic is None or not isinstance(error, pydantic.ValidationError):
        return None
    first = error.errors(include_url=False, include_context=False)[0]
    path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in first["loc"])
    found, says = first["input"], str(first["msg"])
    if first["type"] == "missing":
        return path, "no value", "a value, since the field is required"
    if first["type"] == "extra_forbidden":
        return path, "a field that the model does not have", "the fields of the model"
    shown = repr(found) if found is None or isinstance(found, int | float) else f"`{type(found).__name__}`"
    return path, shown, says.removeprefix("Input should be ").removeprefix("Value error, ")


@lru_cache(maxsize=1024)
def _adapter(kind: type[BaseModel]) -> TypeAdapter[BaseModel]:
    from pydantic import TypeAdapter

    return TypeAdapter(kind)
