"""Rules of commit blocks for every database: ids for intents, and statements that a block refuses."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from msgspec.structs import replace

from detent.errors import WrongPlace
from detent.model.records import NewJob

__all__ = ["failed_inside", "goes_back", "numbered", "refuse_ending"]

# After white space and comments. Going back to a savepoint of the user's own is allowed.
_ENDING = re.compile(
    r"(?:\s|;|--[^\n]*(?:\n|$)|/\*.*?\*/)*"
    r"(?:(?:COMMIT|END|ABORT|PREPARE\s+TRANSACTION)\b|ROLLBACK\b(?!(?:\s+(?:WORK|TRANSACTION))?\s+TO\b))",
    re.IGNORECASE | re.DOTALL,
)


_GOES_BACK = re.compile(r"(?:\s|;|--[^\n]*(?:\n|$)|/\*.*?\*/)*ROLLBACK\b", re.IGNORECASE | re.DOTALL)


def failed_inside(error: BaseException | None) -> WrongPlace:
    """Return the refusal of a block in which a statement failed and its error did not leave the block. Nothing of the
    block is kept, on either database."""
    said = f" ({str(error).strip().partition(chr(10))[0]})" if error is not None else ""
    return WrongPlace(
        "COMMIT",
        f"after a statement of the block has failed{said}",
        "let its error out of the block, or write a statement that does not fail, such as INSERT … ON CONFLICT",
    )


def goes_back(sql: str) -> bool:
    """Return whether a statement rolls back to a savepoint, which undoes what failed since then."""
    return _GOES_BACK.match(sql) is not None


def numbered(intents: Sequence[NewJob], reserve: Callable[[int], int]) -> tuple[NewJob, ...]:
    """Return the intents. Those without an id (0) get one, in order, from a single reservation."""
    missing = sum(not job.id for job in intents)
    fresh = iter(range(first, first + missing) if missing and (first := reserve(missing)) else ())
    return tuple(job if job.id else replace(job, id=next(fresh)) for job in intents)


def refuse_ending(sql: str) -> None:
    """Raise `WrongPlace` for a statement that would end the transaction of the block: what was written before would
    stay, and the next attempt would write it again. Disguised ones are found when the block ends."""
    if _ENDING.match(sql):
        raise WrongPlace("COMMIT or ROLLBACK", "inside a commit block", "the block ends its transaction by itself")
