"""All output of the command line: JSON for programs, aligned text for people."""

from __future__ import annotations

import os
import shutil
import sys
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from typing import Any

import click
import msgspec

from detent.model import terminal_text
from detent.model.records import EventRow, TransitionRow

__all__ = [
    "TRANSITIONS",
    "Cell",
    "Column",
    "Columns",
    "cell",
    "cells_of",
    "columns",
    "count_of",
    "flush",
    "format_time",
    "lists",
    "print_event",
    "print_events",
    "print_fields",
    "print_json",
    "print_json_line",
    "print_note",
    "print_rows",
    "print_section",
    "print_text",
    "records",
    "stored_json",
    "to_object",
]

Cell = str | int | float | datetime | None
Source = str | Callable[[Any], Cell]
"""Where the values of a column come from: the name of a field, or a function of the row."""
Column = str | tuple[str, Source]
"""A field, or a heading and its source."""
Columns = Mapping[str, Source]
"""The columns of a table by heading."""

_IDS = frozenset({
    *("id", "job_id", "lease_id", "run_id", "entity_id", "sample_id"),
    *("parent_id", "root_id", "forked_from", "first_id", "undo_of", "undone_by", "undo_id"),
})  # fmt: skip
_JSON_TEXT = frozenset({"payload", "metadata", "result"})
_COLOURS = {
    **dict.fromkeys(("succeeded", "ok", "done", "open", "active"), "green"),
    **dict.fromkeys(("running", "in_progress", "committed"), "cyan"),
    **dict.fromkeys(("quarantined", "failed", "fail", "ERROR", "CRITICAL"), "red"),
    **dict.fromkeys(("cancelled", "paused", "warn", "WARNING", "aborted"), "yellow"),
}
_GAP = "  "


# -- for programs ----------------------------------------------------------------------------------------------


def to_object(record: Any, **more: Any) -> dict[str, Any]:
    """Return a record, a struct or a dataclass, as JSON values: ids are strings, times are ISO 8601 in UTC, stored JSON
    is embedded as it is."""
    names = [one.name for one in fields(record)] if is_dataclass(record) else record.__struct_fields__
    return {name: _json_value(name, getattr(record, name)) for name in names} | more


def lists(**rows: Iterable[msgspec.Struct]) -> dict[str, list[dict[str, Any]]]:
    """Return lists of records as JSON values, by name."""
    return {name: records(found) for name, found in rows.items()}


def records(rows: Iterable[Any]) -> list[dict[str, Any]]:
    """Return many records as JSON values."""
    return [to_object(row) for row in rows]


def _json_value(name: str, value: Any) -> Any:
    if value is None:
        return None
    if name in _IDS:
        return str(value)
    if name in _JSON_TEXT:
        return stored_json(value)
    return value


def stored_json(text: str) -> Any:
    """Return stored JSON digit for digit, so that no number is rounded on the way; damaged JSON as a string."""
    try:
        msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text
    return msgspec.Raw(text.encode())


def print_json(value: Any) -> None:
    """Print one object or array, indented."""
    _write(terminal_text.json_safe(msgspec.json.format(msgspec.json.encode(value), indent=2).decode()))


def print_json_line(value: Any) -> None:
    """Print one object on one line and flush it: for streams."""
    _write(terminal_text.json_safe(msgspec.json.format(msgspec.json.encode(value), indent=-1).decode()))
    flush()


# -- for people ------------------------------------------------------------------------------------------------


def print_text(text: str) -> None:
    """Print one or more lines of the answer. The caller has escaped stored text."""
    _write(text)


def print_note(text: str) -> None:
    """Print a remark on stderr: it is not part of the answer."""
    click.echo(terminal_text.block(text), err=True)


def print_event(event: EventRow, *, prefix: str = "") -> None:
    """Print an event of a job on one line."""
    payload = "" if event.payload in (None, "{}") else f"{_GAP}{terminal_text.line(event.payload or '')}"
    text = f"{terminal_text.line(event.level):<8}{_GAP}{terminal_text.line(event.message)}{payload}"
    _write(f"{prefix}{format_time(event.at)}{_GAP}{text}")


def print_events(events: Iterable[tuple[str, EventRow]]) -> None:
    """Print events, each with a prefix; a remark if there are none."""
    is_empty = True
    for prefix, event in events:
        print_event(event, prefix=prefix)
        is_empty = False
    if is_empty:
        print_note("no events")


def format_time(moment: datetime | None) -> str:
    """Return a time in UTC, to the second."""
    return "" if moment is None else moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%SZ")


def count_of(count: int, noun: str) -> str:
    """Return a number with its noun, such as `1 job` or `3 jobs`."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def print_rows(rows: Iterable[Any], columns: Columns, *, empty: str = "") -> None:
    """Print aligned columns below a heading; the remark `empty` if there are no rows. On a terminal, rows that are too
    wide are cut."""
    found = cells_of(rows, columns)
    if not found:
        print_note(empty)
        return
    shown = [[cell(value) for value in row] for row in found]
    numbers = [all(isinstance(value, int | float) for value in column) for column in zip(*found, strict=True)]
    widths = [max(map(_width, column)) for column in zip(columns, *shown, strict=True)]
    most = shutil.get_terminal_size().columns if _is_terminal() else None
    for at, row in enumerate([list(columns), *shown]):
        padded = map(_pad, row, widths, numbers)
        text = _cut(_GAP.join(padded).rstrip(), most)
        _write(_bold(text) if at == 0 else _coloured(text, row))


def cells_of(rows: Iterable[Any], columns: Columns) -> list[list[Cell]]:
    """Return the values of the columns for each row; ids as text."""
    return [[_field(row, of) for of in columns.values()] for row in rows]


def _field(row: Any, of: Source) -> Cell:
    if not isinstance(of, str):
        return of(row)
    value: Cell = getattr(row, of)
    return str(value) if of in _IDS and value is not None else value


def columns(*listed: Column) -> Columns:
    """Return the columns of a table: fields, or pairs of a heading and its source. The heading of a field is its name,
    such as FINISHED for `finished_at`."""
    pairs = (one if isinstance(one, tuple) else (_heading(one), one) for one in listed)
    return dict(pairs)


def _heading(field: str) -> str:
    return field.removesuffix("_at").removesuffix("_id").replace("_", " ").upper()


def print_section(rows: Sequence[Any], columns: Columns) -> None:
    """Print rows below an empty line; nothing if there are none."""
    if rows:
        _write("")
        print_rows(rows, columns)


def print_fields(values: Mapping[str, Any]) -> None:
    """Print fields below each other, without the empty ones. Long texts keep their lines."""
    shown = {name: text for name, value in values.items() if (text := _field_text(value))}
    width = max(map(len, shown), default=0)
    for name, text in shown.items():
        first, *rest = text.rstrip("\n").split("\n")
        _write(f"{name:<{width}}{_GAP}{_coloured(first, [first])}".rstrip())
        for more in rest:
            _write(f"{'':<{width}}{_GAP}{more}".rstrip())


def _field_text(value: Any) -> str:
    if isinstance(value, msgspec.Raw):
        return terminal_text.block(bytes(value).decode())
    if isinstance(value, list | tuple):
        return cell(", ".join(map(str, value)))
    return terminal_text.block(value) if isinstance(value, str) else cell(value)


def cell(value: Cell) -> str:
    """Return a value on one line, safe to show on a terminal."""
    if isinstance(value, datetime):
        return format_time(value)
    return "" if value is None else terminal_text.line(str(value))


def _width(text: str) -> int:
    return sum(_columns(letter) for letter in text)


def _columns(letter: str) -> int:
    if unicodedata.combining(letter):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1


def _pad(text: str, width: int, to_the_right: bool) -> str:
    space = " " * (width - _width(text))
    return space + text if to_the_right else text + space


def _cut(text: str, most: int | None) -> str:
    if most is None or _width(text) <= most:
        return text
    while _width(text) > most - 1:
        text = text[:-1]
    return text + "…"


def _bold(text: str) -> str:
    return click.style(text, bold=True) if _has_colour() else text


def _coloured(text: str, cells: Sequence[str]) -> str:
    """Return the text with the names of states in the colours of those states."""
    if _has_colour():
        for word in {cell for cell in cells if cell in _COLOURS}:
            text = text.replace(word, click.style(word, fg=_COLOURS[word]), 1)
    return text


def _is_terminal() -> bool:
    return sys.stdout.isatty()


def _has_colour() -> bool:
    return _is_terminal() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def flush() -> None:
    """Flush stdout."""
    sys.stdout.flush()


def _write(text: str) -> None:
    sys.stdout.write(text + "\n")


def _trigger(row: TransitionRow) -> str:
    return row.trigger + (" (forced)" if row.forced else "")


TRANSITIONS = columns("at", ("FROM", "from_state"), ("TO", "to_state"), ("TRIGGER", _trigger), "actor", "reason")
"""The columns of a list of transitions."""
