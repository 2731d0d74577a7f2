"""The SQL that is shipped beside the code.

Not through `importlib.resources`, which brings archives, compression and temporary files into every supervisor.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal, TypeAlias

__all__ = ["Dialect", "sql_files", "texts"]

Dialect: TypeAlias = Literal["postgres", "sqlite"]

_HERE = Path(__file__).parent


def sql_files(folder: str) -> list[Path]:
    """The `.sql` files in a folder of the store, by name."""
    return sorted((_HERE / folder).glob("*.sql"))


def texts(folder: str) -> list[tuple[str, str]]:
    """Their names and texts."""
    return [(file.stem, file.read_text(encoding="utf-8")) for file in sql_files(folder)]
