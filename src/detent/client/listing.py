"""One page of a list."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from detent.errors import InvalidInput

__all__ = ["LIST_MAX", "ListPage", "check_limit", "page_by_name"]

T = TypeVar("T")
U = TypeVar("U")

LIST_MAX = 10_000


class ListPage(list[T]):
    """One page of a list: a plain list whose `next` is the `after` of the next page, or None at the end."""

    def __init__(self, found: Iterable[T], next: str | None = None) -> None:
        super().__init__(found)
        self.next = next

    def each(self, change: Callable[[T], U]) -> ListPage[U]:
        """Return the same page with every item changed."""
        return ListPage(map(change, self), self.next)


def check_limit(limit: int) -> int:
    """Return how many items to list. `InvalidInput`."""
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= LIST_MAX:
        raise InvalidInput("limit", repr(limit)[:80], f"a whole number from 1 to {LIST_MAX}")
    return limit


def page_by_name(found: Iterable[T], name: Callable[[T], str], after: str | None, limit: int) -> ListPage[T]:
    """Return one page of items that are sorted by name: those behind the name `after`."""
    most = check_limit(limit)
    left = [one for one in found if after is None or name(one) > after]
    return ListPage(left[:most], name(left[most - 1]) if len(left) > most else None)
