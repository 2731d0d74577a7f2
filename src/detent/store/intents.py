"""What commit blocks have in common, whatever the database: ids for intents, and what is no statement for them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from msgspec.structs import replace

from detent.errors import WrongPlace
from detent.model.records import NewJob

__all__ = ["failed_inside", "goes_back", "numbered", "refuse_ending"]

# Past white space and comments; to go back to a savepoint of one's own is fine.
_ENDING = re.compile(
    r"(?:\s|;|--[^\n]*(?:\n|$)|/\*.*?\*/)*"
    r"(?:(?:COMMIT|END|ABORT|PREPARE\s+TRANSACTION)\b|ROLLBACK\b(?!(?:\s+(?:WORK|TRANSACTION))?\s+TO\b))",
    re.IGNORECASE | re.DOTALL,
)


_GOES_BACK = re.compile(r"(?:\s|;|--[^\n]*(?:\n|$)|/\*.*?\*/)*ROLLBACK\b", re.IGNORECASE | re.DOTALL)


def failed_inside(error: BaseException | None) -> WrongPlace:
    """A statement of the block failed, and its error stayed inside: nothing of the block stays. One database would have
    kept the rest and another not: here neither does."""
    said = f" ({str(error).strip().partition(chr(10))[0]})" if error is not None else ""
    return WrongPlace(
        "COMMIT",
        f"after a statement of the block has failed{said}",
        "let its error out of the block, or write a statement that does not fail, such as INSERT … ON CONFLICT",
    )


def goes_back(sql: str) -> bool:
    """Whether a statement of the user's goes back to a savepoint: what failed since then is undone."""
    return _GOES_BACK.match(sql) is not None


def numbered(intents: Sequence[NewJob], reserve: Callable[[int], int]) -> tuple[NewJob, ...]:
    """The intents, those without an id (0) given one from a single reservation, in order."""
    missing = sum(not job.id for job in intents)
    fresh = iter(range(first, first + missing) if missing and (first := reserve(missing)) else ())
    return tuple(job if job.id else replace(job, id=next(fresh)) for job in intents)


def refuse_ending(sql: str) -> None:
    """`WrongPlace` for a statement that would end the block's transaction: what was written before it would stay, and
    be written again by the next attempt. What hides behind other words is found when the block ends."""
    if _ENDING.match(sql):
        raise WrongPlace("COMMIT or ROLLBACK", "inside a commit block", "the block ends its transaction by itself")
