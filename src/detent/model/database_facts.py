"""Facts about a database and about this release, for checks and for `detent doctor`."""

from __future__ import annotations

from msgspec import Struct

__all__ = ["RELEASE", "Facts", "LogGrowth", "OpenTransaction", "Space", "TableRows"]

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


class TableRows(Struct, frozen=True, kw_only=True):
    """How many rows a table has, and how many dead ones nobody has cleaned up yet, as the server estimates it."""

    name: str
    live: int
    dead: int


class OpenTransaction(Struct, frozen=True, kw_only=True):
    """A transaction that has been open for long. The server cannot clean up rows that died since it began."""

    who: str
    seconds: float


class Space(Struct, frozen=True, kw_only=True):
    """How much space a database takes. `free_bytes` of `disk_bytes` are left on its disk; None if that cannot be seen
    from here. `unused_bytes` of the database are free for new rows. `tables` are those with dead rows, the one with
    the most first; `oldest` is the transaction that has been open longest."""

    bytes: int
    unused_bytes: int = 0
    free_bytes: int | None = None
    disk_bytes: int | None = None
    tables: tuple[TableRows, ...] = ()
    oldest: OpenTransaction | None = None
