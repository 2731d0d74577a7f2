"""The options and fields of tasks, batches and pipelines as people write them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any, TypeVar

from detent.errors import InvalidArguments, InvalidSetting
from detent.model import jsondoor

__all__ = ["options_of", "refuse_unknown"]

T = TypeVar("T")


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


def refuse_unknown(kind: type[Any], name: str, text: str) -> None:
    """`InvalidArguments` for a field that the class does not have: it is more likely misspelt than meant for nobody.

    Only for what a person has just written: what was stored by other code may have fields that this one has lost.
    """
    known = {field.name for field in dataclasses.fields(kind)}
    if unknown := sorted(set(jsondoor.decode(text, field=name)) - known):
        fields = ", ".join(sorted(known)) or "none: it has no fields"
        raise InvalidArguments(name, f"the field {unknown[0]!r:.80}", fields)
