"""Secrets of webhooks: where they come from, and that they are never shown.

A secret is a text, bytes, `env:NAME` for an environment variable, or a function that returns one of them. Several may
be given while a secret is rotated: each of them is accepted, and the first one signs.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TypeAlias

from detent.declare.settings import inherited_environment
from detent.errors import InvalidSetting

__all__ = ["Secret", "SharedSecret"]

log = logging.getLogger("detent.webhooks")

_ENVIRONMENT = "env:"
_SECRETS_MAX = 10
_ALLOWED = "a text, bytes, env:NAME, or a function that returns a text or bytes"

Secret: TypeAlias = "str | bytes | Callable[[], str | bytes | None]"


class SharedSecret:
    """The secrets of one webhook. They are read once, when they are first needed.

    `decode` turns each secret into the key that signs. It raises `ValueError` if the secret does not have the form that
    the provider gives out.
    """

    def __init__(
        self, owner: str, given: Secret | Sequence[Secret], decode: Callable[[bytes], bytes] = lambda key: key
    ) -> None:
        self._owner = owner
        self._decode = decode
        single = isinstance(given, str | bytes) or callable(given)
        sources: list[Secret] = [given] if single else list(given)  # type: ignore[list-item, arg-type]
        if not 1 <= len(sources) <= _SECRETS_MAX:
            raise InvalidSetting("secret", f"{len(sources)} secrets", f"one secret, or a list of up to {_SECRETS_MAX}")
        for source in sources:
            self._check(source)
        self._sources = sources
        self._read: tuple[bytes, ...] | None = None

    def __repr__(self) -> str:
        return f"<SharedSecret of {self._owner}>"

    @property
    def keys(self) -> tuple[bytes, ...]:
        """The keys that count now. Without any, the webhook is off."""
        if self._read is None:
            self._read = tuple(key for source in self._sources if (key := self._key(source)))
        return self._read

    def _check(self, source: Secret) -> None:
        """Refuse a secret that can never work. `InvalidSetting`; the secret itself is not shown."""
        if callable(source):
            return
        if not isinstance(source, str | bytes):
            raise InvalidSetting("secret", f"a value of type {type(source).__name__}", _ALLOWED)
        name = _variable(source)
        if not source or name == "":
            raise InvalidSetting("secret", "an empty secret, with which anyone could sign", _ALLOWED)
        if name is None:
            try:
                self._decode(_bytes(source))
            except ValueError as error:
                raise InvalidSetting("secret", str(error), "the secret as the provider shows it") from None

    def _key(self, source: Secret) -> bytes | None:
        """Return the key of a secret; None if there is none, which is logged."""
        found: str | bytes | None
        if callable(source):
            found, place = source(), "the function that returns its secret returned nothing"
        elif name := _variable(source):
            found, place = inherited_environment([name]).get(name), f"the environment variable {name} is not set"
        else:
            found, place = source, ""
        if not found:
            log.warning("A secret of webhook %s is missing: %s.", self._owner, place)
            return None
        try:
            return self._decode(_bytes(found))
        except ValueError as error:
            log.error("A secret of webhook %s cannot be used: %s.", self._owner, error)
            return None


def _variable(source: object) -> str | None:
    """Return the name of the environment variable that holds the secret; None if it stands in the code."""
    return source.removeprefix(_ENVIRONMENT) if isinstance(source, str) and source.startswith(_ENVIRONMENT) else None


def _bytes(secret: str | bytes) -> bytes:
    return secret.encode() if isinstance(secret, str) else secret
