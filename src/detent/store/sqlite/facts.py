"""What a SQLite file, and the library that reads it, say about themselves."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping

from detent.model.database_facts import Facts
from detent.store.migrate import Applied, names, pending
from detent.store.sqlite.schema import KNOWN, differing_parts

__all__ = ["facts"]

_SOUND_SINCE = (3, 51, 3)
_LEVELS = {0: "OFF", 1: "NORMAL", 2: "FULL", 3: "EXTRA"}


def facts(connection: sqlite3.Connection | None, applied: Mapping[int, Applied]) -> Facts:
    """As a connection of Detent's sees it; without one there is no file yet, and only the library speaks."""
    durability: dict[str, str] = {}
    caution = None
    if connection is not None:
        ((mode,),) = connection.execute("PRAGMA journal_mode").fetchall()
        ((level,),) = connection.execute("PRAGMA synchronous").fetchall()
        durability = {"journal_mode": mode, "synchronous": _LEVELS[level]}
        if level < 2:
            caution = "what was acknowledged may be lost in a power failure"
    return Facts(
        kind="SQLite",
        version=sqlite3.sqlite_version,
        version_caution=None if sqlite3.sqlite_version_info >= _SOUND_SINCE else _caution(),
        schema=max(applied, default=0),
        missing=names(pending(KNOWN, applied)),
        differs=differing_parts(connection, applied),
        durability=durability,
        durability_caution=caution,
    )


def _caution() -> str:
    sound = ".".join(map(str, _SOUND_SINCE))
    return (
        f"before {sound} a file that is checkpointed by one connection while another writes may, rarely, be corrupted; "
        "Detent never does that; keep other programs from writing to the file, or use a Python with a later SQLite"
    )
