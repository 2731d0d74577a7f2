"""The fields of batches and pipelines as people write them."""

from __future__ import annotations

import dataclasses
from typing import Any

from detent.errors import InvalidArguments
from detent.model import jsondoor

__all__ = ["refuse_unknown"]


def refuse_unknown(kind: type[Any], name: str, text: str) -> None:
    """`InvalidArguments` for a field that the class does not have: it is more likely misspelt than meant for nobody.

    Only for what a person has just written: what was stored by other code may have fields that this one has lost.
    """
    known = {field.name for field in dataclasses.fields(kind)}
    if unknown := sorted(set(jsondoor.decode(text, field=name)) - known):
        fields = ", ".join(sorted(known)) or "none: it has no fields"
        raise InvalidArguments(name, f"the field {unknown[0]!r:.80}", fields)
