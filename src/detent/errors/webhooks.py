"""Errors of webhooks."""

from __future__ import annotations

from dataclasses import dataclass

from detent.errors.base import Refused

__all__ = ["WrongSignature"]


@dataclass(eq=False)
class WrongSignature(Refused):
    """A delivery to a webhook is not signed, not with its secret, or was signed too long ago."""

    webhook: str

    def __str__(self) -> str:
        return (
            f"the delivery to webhook {self.webhook!r} was refused: its signature is missing, wrong or too old; "
            f"check that both sides have the same secret and the right time"
        )
