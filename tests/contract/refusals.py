"""Checks of what a verb refuses: which error it answers, and that it changed nothing."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, TypeVar

from detent.errors import DetentError

__all__ = ["Untouched", "refused"]

Untouched = Callable[[], AbstractContextManager[None]]
"""The type of the fixture `untouched`."""
E = TypeVar("E", bound=DetentError)


def refused(answer: object, kind: type[E], **fields: Any) -> E:
    """The answer is this refusal and says these things."""
    assert type(answer) is kind, f"expected {kind.__name__}, got {answer!r}"
    found = {name: getattr(answer, name) for name in fields}
    assert found == fields, f"expected {fields}, got {answer!r}"
    return answer
