"""What a database says about itself."""

from __future__ import annotations

from msgspec import Struct

__all__ = ["Facts", "LogGrowth"]

_NAMED_MAX = 5


class Facts(Struct, frozen=True, kw_only=True):
    """For whoever looks after it. A caution is a sentence about what is not as it should be; None where all is well.

    `schema` is the number of the newest migration it has taken, 0 if it has no schema; `missing` the migrations still
    to apply; `differs` the installed parts that are not those of this release, if no migration is missing.
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
    """How long the write-ahead log of a database is.

    `is_long`: longer than it gets by writing alone. `readers` are the processes that read from the database now, as far
    as this machine tells; if they keep their snapshots, they are why the log cannot begin anew.
    """

    bytes: int
    is_long: bool
    readers: tuple[int, ...] = ()

    @property
    def message(self) -> str:
        """What is wrong with a log that is long, and what to do."""
        known = ", ".join(map(str, self.readers[:_NAMED_MAX]))
        more = f" and {len(self.readers) - _NAMED_MAX} more" if len(self.readers) > _NAMED_MAX else ""
        who = f"a reader (process {known}{more})" if known else "a reader"
        return (
            f"the write-ahead log holds {self.bytes >> 20} MB and grows with every write while {who} keeps a snapshot "
            "open; end its transaction or cursor, and the next writes shorten the log"
        )
