"""Empty databases of both kinds, side by side, with clocks that are turned together."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager

from detent.testing.stores import turnable_store
from prove.reference.dump import Reader
from tests.twin.machine import Side

__all__ = ["OpenSides", "side_on"]

OpenSides = Callable[[], AbstractContextManager[list[Side]]]


@contextmanager
def side_on(name: str, url: str) -> Iterator[Side]:
    """One side."""
    with turnable_store(url) as (store, clock), closing(Reader(url)) as reader:
        yield Side(name, store, clock, reader)
