"""The SQL files that are shipped beside the code.

The folder of a noun has its own parts: `functions.sql` or `functions/*.sql` for PostgreSQL, and `postgres_guards.sql`,
`postgres_triggers.sql`, `postgres_views.sql` and the same for `sqlite`. What belongs to no noun is in
`postgres/functions.sql`.

The files are not read through `importlib.resources`, which would load archives, compression and temporary files into
every supervisor.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal, TypeAlias

__all__ = ["Dialect", "Part", "closing_parenthesis", "parts", "sql_files", "sql_text", "texts"]

Dialect: TypeAlias = Literal["postgres", "sqlite"]
Part: TypeAlias = Literal["functions", "triggers", "views"]

_FOLDERS = (
    *("postgres", "jobs", "limits", "schedules", "workers", "operations", "alerts", "batches", "pipelines", "ops"),
    *("workflows", "graphs", "tokens", "webhooks", "entities", "move"),
)
"""In the order in which their views can be created."""
_HERE = Path(__file__).parent


def sql_files(folder: str) -> list[Path]:
    """Return the `.sql` files in a folder of the store, by name."""
    return sorted((_HERE / folder).glob("*.sql"))


def texts(folder: str) -> list[tuple[str, str]]:
    """Return the names and texts of the `.sql` files in a folder of the store."""
    return [(file.stem, file.read_text(encoding="utf-8")) for file in sql_files(folder)]


def parts(dialect: Dialect, part: Part) -> list[str]:
    """Return the texts of all functions, triggers or views."""
    files: list[Path] = []
    for folder in _FOLDERS:
        match part:
            case "functions":
                names = ["functions.sql"] if dialect == "postgres" else []
                files += sql_files(f"{folder}/functions") if dialect == "postgres" else []
            case "triggers":
                names = [f"{dialect}_guards.sql", f"{dialect}_triggers.sql"]
            case "views":
                names = [f"{dialect}_views.sql"]
        files += [file for name in names if (file := _HERE / folder / name).exists()]
    return [file.read_text(encoding="utf-8") for file in files]


def sql_text(file: str) -> str:
    """Return the text of one `.sql` file of the store."""
    return (_HERE / file).read_text(encoding="utf-8")


def closing_parenthesis(text: str, start: int) -> int:
    """Return the position of the parenthesis that closes the one before `start`."""
    depth, quoted = 1, False
    for at in range(start, len(text)):
        letter = text[at]
        if letter == "'":
            quoted = not quoted
        elif not quoted:
            depth += (letter == "(") - (letter == ")")
            if depth == 0:
                return at
    raise AssertionError(f"no closing parenthesis: {text[start : start + 60]}")
