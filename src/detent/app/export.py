"""Exporting the changes of a batch run to a file."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import msgspec

from detent.errors import InvalidInput

if TYPE_CHECKING:
    from detent.app.batch_run import TargetChange

__all__ = ["FORMATS", "export_changes"]

FORMATS = ("csv", "json")
_COLUMNS = ("ref", "state", "changed", "before", "after", "error")


def export_changes(changes: Iterable[TargetChange], to: str | Path | TextIO, format: str) -> int:
    """Write the changes, and return their number. A file that is given by path appears only when it is complete."""
    if format not in FORMATS:
        raise InvalidInput("format", repr(format)[:80], ", ".join(FORMATS))
    if not isinstance(to, str | Path):
        return _write(changes, to, format)
    path = Path(to)
    part = path.with_name(f".{path.name}.part")
    try:
        with part.open("w", encoding="utf-8", newline="") as file:
            count = _write(changes, file, format)
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)
    return count


def _write(changes: Iterable[TargetChange], file: TextIO, format: str) -> int:
    return _write_csv(changes, file) if format == "csv" else _write_json(changes, file)


def _write_csv(changes: Iterable[TargetChange], file: TextIO) -> int:
    """Write CSV; the cells of before and after are JSON."""
    writer = csv.writer(file)
    writer.writerow(_COLUMNS)
    count = 0
    for one in changes:
        writer.writerow([one.ref, one.state, _word(one.changed), _json(one.before), _json(one.after), one.error or ""])
        count += 1
    return count


def _write_json(changes: Iterable[TargetChange], file: TextIO) -> int:
    file.write("[")
    count = 0
    for count, one in enumerate(changes, start=1):
        file.write(",\n " if count > 1 else "\n ")
        file.write(_json({name: getattr(one, name) for name in _COLUMNS}))
    file.write("\n]\n")
    return count


def _word(changed: bool | None) -> str:
    return "" if changed is None else ("yes" if changed else "no")


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
