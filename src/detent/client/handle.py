"""What the handles of runs and operations have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, Self, TypeVar

if TYPE_CHECKING:
    from detent.client.engine import Engine

__all__ = ["Handle"]

RowT = TypeVar("RowT")


class Handle(Generic[RowT]):
    """A row as it was when it was last read. Attributes never read the database; `refresh()` and `wait()` do."""

    row: RowT

    def __init__(self, row: RowT, engine: Engine) -> None:
        self.row = row
        self._engine = engine

    @classmethod
    def like(cls, other: Handle[RowT]) -> Self:
        """Return a handle of this class with what the other one knows."""
        return cls(other.row, other._engine)

    def _adopt(self, other: Handle[RowT]) -> Self:
        self.row = other.row
        return self
