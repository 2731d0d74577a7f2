"""How the contract declares a verb: the role that may call it, and the errors with which it refuses an item."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, TypeVar

from detent.errors import DetentError

__all__ = ["Role", "Verb", "catalogue_of", "verb"]

Role: TypeAlias = Literal["client", "worker", "viewer", "admin"]
F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Verb:
    """A verb of the catalogue. `reads` says that it changes nothing."""

    name: str
    role: Role
    refuses: tuple[type[DetentError], ...]
    reads: bool


def verb(role: Role, *refuses: type[DetentError], reads: bool = False) -> Callable[[F], F]:
    """Declare a method of a protocol as a verb. A viewer's verbs only read."""

    def declare(method: F) -> F:
        vars(method)["verb"] = Verb(method.__name__, role, refuses, reads or role == "viewer")
        return method

    return declare


def catalogue_of(contract: type) -> dict[str, Verb]:
    """Return the verbs that a protocol declares or inherits, by name."""
    methods = (method for protocol in reversed(contract.__mro__) for method in vars(protocol).values())
    found = (method.verb for method in methods if hasattr(method, "verb"))
    return {one.name: one for one in found}
