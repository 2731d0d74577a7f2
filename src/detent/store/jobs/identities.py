"""The identities of a database, kept in memory: an effect key is made for every attempt that asks for one."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import TypeAlias

from detent.errors import DatabaseError
from detent.model.service_records import IdentityRow

__all__ = ["Identities"]

_Known: TypeAlias = tuple[list[int], list[str]]


class Identities:
    """Knows which identity holds for which id. Reads the rows at first use, and again after `forget`."""

    def __init__(self, database: Callable[[], str], read: Callable[[], Sequence[IdentityRow]]) -> None:
        self._database = database
        self._read = read
        self._known: _Known | None = None

    def of(self, number: int) -> str:
        """Return the identity under which that id was reserved. `DatabaseError` if the database has none."""
        known = self._known or self.load()
        if known is None:
            detail = "its identity is missing, so no effect key can be made; `detent identities renew` makes one"
            raise DatabaseError(self._database(), detail)
        firsts, identities = known
        return identities[max(bisect_right(firsts, number) - 1, 0)]

    def load(self) -> _Known | None:
        """Read the rows; None if there are none. Many threads may do it at once."""
        rows = sorted(self._read(), key=lambda row: row.first_id)
        self._known = ([row.first_id for row in rows], [row.identity for row in rows]) if rows else None
        return self._known

    def forget(self) -> None:
        """Read the rows again at the next use."""
        self._known = None
