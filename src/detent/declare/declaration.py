"""What declarations have in common: options that are checked by name, and the dataclasses of batches and pipelines."""

from __future__ import annotations

import dataclasses
import inspect
import math
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Any, ClassVar, TypeVar

import msgspec

from detent.declare.settings import Settings
from detent.declare.task import name_of
from detent.errors import InvalidArguments, InvalidPayload, InvalidSetting
from detent.model import json_codec
from detent.model.json_types import fault_of_type

__all__ = ["RunDeclaration", "is_tolerance", "options_of"]

T = TypeVar("T")

_CARRIED = "types at module level that JSON can tell apart: numbers, strings, lists, dicts, dates, enums and the like"


def options_of(kind: type[T], what: str, given: Mapping[str, Any]) -> T:
    """Return the options as an object of the dataclass `kind`; `what` is the thing they belong to, such as a task.

    `InvalidSetting` for an option that does not exist, with the one that was probably meant.
    """
    known = [field.name for field in dataclasses.fields(kind)]  # type: ignore[arg-type]
    for name in given:
        if name not in known:
            meant = get_close_matches(name, known, 1)
            allowed = ", ".join(known) + (f" (did you mean {meant[0]}?)" if meant else "")
            raise InvalidSetting(name, f"no option of a {what}", allowed)
    return kind(**given)


def is_tolerance(value: object) -> bool:
    """Whether a value is a number of failures, or a share below 1."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return value >= 0 if isinstance(value, int) else math.isfinite(value) and 0 <= value < 1


class RunDeclaration:
    """A dataclass that was declared as a batch or as a pipeline; each object of it describes a run.

    Refuses with `InvalidSetting` a class that is not a dataclass, lacks a method, has a method with other parameters,
    or has fields that JSON cannot carry.
    """

    noun: ClassVar[str]
    methods: ClassVar[Mapping[str, tuple[str, bool]]]
    """The methods by name: each with its signature, and whether it is required."""

    def __init__(self, kind: type[Any], name: str | None, name_max: int, settings: Settings) -> None:
        self.kind = kind
        self.name = name_of(kind) if name is None else name
        self._settings = settings
        json_codec.text(self.name, field=f"{self.noun} name", bytes_max=name_max)
        if not isinstance(kind, type) or not dataclasses.is_dataclass(kind):
            found = f"{kind!r:.80}, which is no dataclass"
            raise InvalidSetting(self.name, found, f"@app.{self.noun} above @dataclass")
        for method, (signature, required) in self.methods.items():
            self._check_method(method, signature, required)
        try:
            msgspec.json.Decoder(kind)
        except (TypeError, NameError) as error:
            raise InvalidSetting(self.name, f"a field that JSON cannot carry: {error}"[:300], _CARRIED) from None
        if (fault := fault_of_type(kind)) is not None:
            raise InvalidSetting(f"{self.name}{fault[0]}", *fault[1:])

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"

    def method(self, name: str) -> Callable[..., Any] | None:
        """Return a declared method; None if there is none, or only a field of that name."""
        found = getattr(self.kind, name, None)
        return found if callable(found) else None

    def encode(self, value: Any) -> str:
        """Return the fields of an object as they are stored. `InvalidArguments` if they do not fit their
        annotations."""
        text = self._encode(self.name, value)
        self.decode(text)
        return text

    def decode(self, payload: str) -> Any:
        """Return the object of stored fields. `InvalidArguments` if the fields no longer fit."""
        try:
            return json_codec.decode(payload, self.kind, field=self.name, depth_max=self._settings.depth_max)
        except InvalidPayload as error:
            raise InvalidArguments(error.field, error.found, error.allowed) from None

    def parse(self, text: str) -> Any:
        """Return the object of fields that a person wrote. `InvalidArguments` if they do not fit, or for a field that
        the class does not have. Stored fields are not checked that way: older code may have had more of them."""
        value = self.decode(text)
        known = {field.name for field in dataclasses.fields(self.kind)}
        if unknown := sorted(set(json_codec.decode(text, field=self.name)) - known):
            fields = ", ".join(sorted(known)) or "none: it has no fields"
            raise InvalidArguments(self.name, f"the field {unknown[0]!r:.80}", fields)
        return value

    def _encode(self, field: str, value: object) -> str:
        settings = self._settings
        return json_codec.encode(value, field=field, size_max=settings.payload_max, depth_max=settings.depth_max)

    def _check_method(self, method: str, signature: str, required: bool) -> None:
        found = self.method(method)
        if found is None and not required:
            return
        if found is None:
            raise InvalidSetting(self.name, f"a {self.noun} without {method}", signature)
        try:
            inspect.signature(found).bind(*([None] * len(signature.split(","))))
        except TypeError as error:
            raise InvalidSetting(self.name, f"{method}{inspect.signature(found)}: {error}"[:200], signature) from None
