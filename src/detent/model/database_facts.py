"""Facts about a database and about this release, for checks and for `detent doctor`."""

from __future__ import annotations

from msgspec import Struct

__all__ = ["RELEASE", "Facts", "LogGrowth"]

RELEASE = (0, 1, 0)
"""The number of this release, equal to `detent.__version__` (a test checks it). It only grows, so two programs on one
database can tell which of them is newer."""

_NAMED_MAX = 5


class Facts(Struct, frozen=True, kw_only=True):
    """What a database reports about itself. A caution is a sentence about a problem; None if there is none.

    `schema` is the number of the newest migration that was applied, 0 if there is no schema; `missing` are the
    migrations still to apply; `differs` are the installed parts that are not those of this release, if no migration is
    missing.
    """

    kind: str
    version: str
    version_caution: str | None
    schema: int
    missing: tuple[str, ...]
    differs: tuple[str, ...] = ()
    durability: dict[str, str]
    durability_caution: str | None


class LogGrowth(Struct, frozen=True, kw_only=True):
    """The size of the write-ahead log of a database.

    `is_long` is true if the log is longer than writes alone make it. `readers` are the processes that read from the
    database now, as far as this machine can tell. A reader that keeps its snapshot keeps the log from being reset.
    """

    bytes: int
    is_long: bool
    readers: tuple[int, ...] = ()

    @property
    def message(self) -> str:
        """Return what is wrong with a long log, and what to do."""
        known = ", ".join(map(str, self.readers[:_NAMED_MAX]))
        more = f" and {len(self.readers) - _NAMED_MAX} more" if len(self.readers) > _NAMED_MAX else ""
        who = f"a reader (process {known}{more})" if known else "a reader"
        return (
            f"the write-ahead log holds {self.bytes >> 20} MB and grows with every write while {who} keeps a snapshot "
            "open; end its transaction or cursor, and the next writes shorten the log"
        )
