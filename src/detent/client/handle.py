"""What the handles of runs and operations have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, Protocol, Self, TypeVar

from detent.model import json_codec

if TYPE_CHECKING:
    from detent.client.engine import Engine

__all__ = ["Handle", "NumberedHandle", "RunHandle"]

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


class _NumberedRow(Protocol):
    @property
    def id(self) -> int: ...

    @property
    def state(self) -> str: ...


NumberedT = TypeVar("NumberedT", bound=_NumberedRow)


class NumberedHandle(Handle[NumberedT]):
    """The handle of a row with an id and a state. Two handles are equal if they mean the same row."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NumberedHandle) and type(self.row) is type(other.row) and self.id == other.id

    def __hash__(self) -> int:
        return hash(self.id)

    @property
    def id(self) -> int:
        """Its number."""
        return self.row.id

    @property
    def state(self) -> str:
        """The state of its lifecycle."""
        return self.row.state


class _RunRow(_NumberedRow, Protocol):
    @property
    def payload(self) -> str: ...


RunT = TypeVar("RunT", bound=_RunRow)


class RunHandle(NumberedHandle[RunT]):
    """The handle of a batch run or a pipeline run."""

    def _repr_html_(self) -> str:
        from detent.client.notebook_html import shown

        return shown(f"Run {self.id}", self)

    @property
    def payload(self) -> Any:
        """The fields of the batch or pipeline, as JSON values."""
        return json_codec.decode(self.row.payload, depth_max=self._engine.settings.depth_max)
