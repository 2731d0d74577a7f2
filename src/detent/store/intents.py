"""Ids for the intents of a commit block."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from detent.model.records import NewJob

__all__ = ["numbered"]


def numbered(intents: Sequence[NewJob], reserve: Callable[[int], int]) -> tuple[NewJob, ...]:
    """The intents, those without an id (0) given one from a single reservation, in order."""
    missing = sum(not job.id for job in intents)
    fresh = iter(range(first, first + missing) if missing and (first := reserve(missing)) else ())
    return tuple(job if job.id else replace(job, id=next(fresh)) for job in intents)
