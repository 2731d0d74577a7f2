"""How much space a SQLite file takes, and how much is left on its disk."""

from __future__ import annotations

import os
import shutil
import sqlite3

from detent.model.database_facts import Space

__all__ = ["space"]


def space(connection: sqlite3.Connection, path: str) -> Space:
    """Return the space of the file that this connection reads."""
    ((page,),) = connection.execute("PRAGMA page_size").fetchall()
    ((pages,),) = connection.execute("PRAGMA page_count").fetchall()
    ((unused,),) = connection.execute("PRAGMA freelist_count").fetchall()
    disk = shutil.disk_usage(os.path.dirname(os.path.abspath(path)))
    return Space(bytes=page * pages, unused_bytes=page * unused, free_bytes=disk.free, disk_bytes=disk.total)
