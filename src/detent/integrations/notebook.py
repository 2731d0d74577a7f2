"""Tables in notebooks. Handles and lists of Detent show themselves; `table` shows anything else that Detent returns."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from detent.client import notebook_html

__all__ = ["Table", "table"]


class Table:
    """A table that a notebook shows as HTML."""

    def __init__(self, html: str) -> None:
        self._html = html

    def _repr_html_(self) -> str:
        return self._html


def table(items: Iterable[Any]) -> Table:
    """Return a table with a row for each item, such as `run.changes()` or `job.history()`: at most 100
    rows, and how many more there are."""
    return Table(notebook_html.table(items))
