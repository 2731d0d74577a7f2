"""The one place for output: JSON for programs, aligned text for people."""

from __future__ import annotations

import os
import shutil
import sys
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import click
import msgspec

from detent.model import escape
from detent.model.records import TransitionRow

__all__ = [
    "Cell",
    "cell",
    "fields",
    "flush",
    "json_line",
    "json_value",
    "moves",
    "note",
    "out",
    "plain",
    "records",
    "table",
    "when",
]

Cell = str | int | float | datetime | None

_IDS = frozenset({"id", "job_id", "lease_id", "run_id", "entity_id", "sample_id"})
_JSON_TEXT = frozenset({"payload", "metadata", "result"})
_COLOURS = {
    **dict.fromkeys(("succeeded", "ok", "done", "open"), "green"),
    **dict.fromkeys(("running", "in_progress", "committed"), "cyan"),
    **dict.fromkeys(("quarantined", "failed", "fail", "ERROR", "CRITICAL"), "red"),
    **dict.fromkeys(("cancelled", "paused", "warn", "WARNING", "aborted"), "yellow"),
}
_GAP = "  "


# -- for programs ----------------------------------------------------------------------------------------------


def plain(record: msgspec.Struct, **more: Any) -> dict[str, Any]:
    """A record as JSON values: ids are strings, times are ISO 8601 in UTC, stored JSON stands as itself."""
    return {name: _plain(name, getattr(record, name)) for name in record.__struct_fields__} | more


def records(rows: Iterable[msgspec.Struct]) -> list[dict[str, Any]]:
    """Many records as JSON values."""
    return [plain(row) for row in rows]


def _plain(name: str, value: Any) -> Any:
    if value is None:
        return None
    if name in _IDS:
        return str(value)
    if name in _JSON_TEXT:
        return _stored_json(value)
    return value


def _stored_json(text: str) -> Any:
    """The text itself, digit for digit, so that no number is rounded on the way; damaged text as a string."""
    try:
        msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text
    return msgspec.Raw(text.encode())


def json_value(value: Any) -> None:
    """One object or array, indented."""
    _write(escape.json_safe(msgspec.json.format(_encode(value), indent=2).decode()))


def json_line(value: Any) -> None:
    """One object on one line, sent at once: for streams."""
    _write(escape.json_safe(msgspec.json.format(_encode(value), indent=-1).decode()))
    sys.stdout.flush()


def _encode(value: Any) -> bytes:
    return msgspec.json.encode(value)


# -- for people ------------------------------------------------------------------------------------------------


def out(text: str) -> None:
    """A line, or several, of the answer. Stored text goes through `escape` before it comes here."""
    _write(text)


def note(text: str) -> None:
    """A remark for whoever watches; never part of the answer."""
    click.echo(escape.block(text), err=True)


def when(moment: datetime | None) -> str:
    """A time for people: to the second, in UTC."""
    return "" if moment is None else moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%SZ")


def table(head: Sequence[str], rows: Iterable[Sequence[Cell]], *, empty: str = "nothing") -> None:
    """Rows in aligned columns under their heading; where there are none, a remark instead. On a terminal a row that is
    too wide is cut; in a file never."""
    listed = list(rows)
    if not listed:
        note(empty)
        return
    shown = [[cell(value) for value in row] for row in listed]
    numbers = [all(isinstance(value, int | float) for value in column) for column in zip(*listed, strict=True)]
    widths = [max(map(_width, column)) for column in zip(head, *shown, strict=True)]
    most = shutil.get_terminal_size().columns if _is_terminal() else None
    for at, row in enumerate([list(head), *shown]):
        padded = map(_pad, row, widths, numbers)
        text = _cut(_GAP.join(padded).rstrip(), most)
        _write(_bold(text) if at == 0 else _coloured(text, row))


def fields(values: Mapping[str, Cell]) -> None:
    """One thing: its fields below each other, those that are empty left out; long texts keep their lines."""
    shown = {name: value for name, value in values.items() if value is not None and value != ""}
    width = max(map(len, shown), default=0)
    for name, value in shown.items():
        text = escape.block(value) if isinstance(value, str) else cell(value)
        first, *rest = text.rstrip("\n").split("\n")
        _write(f"{name:<{width}}{_GAP}{_coloured(first, [first])}".rstrip())
        for more in rest:
            _write(f"{'':<{width}}{_GAP}{more}".rstrip())


def cell(value: Cell) -> str:
    """A value on one line, safe to show."""
    if isinstance(value, datetime):
        return when(value)
    return "" if value is None else escape.line(str(value))


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
    """The words that stand for a state in the colour of that state."""
    if _has_colour():
        for word in {cell for cell in cells if cell in _COLOURS}:
            text = text.replace(word, click.style(word, fg=_COLOURS[word]), 1)
    return text


def _is_terminal() -> bool:
    return sys.stdout.isatty()


def _has_colour() -> bool:
    return _is_terminal() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def flush() -> None:
    """Send what was written on its way now."""
    sys.stdout.flush()


def _write(text: str) -> None:
    sys.stdout.write(text + "\n")


def moves(as_json: bool, found: Sequence[TransitionRow]) -> None:
    """Print transitions as a table or as JSON."""
    if as_json:
        json_value(records(found))
        return
    table(
        ["WHEN", "FROM", "TO", "BY", "ACTOR", "REASON"],
        [
            [
                *(one.at, one.from_state, one.to_state, one.trigger + (", forced" if one.forced else "")),
                *(one.actor, one.reason),
            ]
            for one in found
        ],
        empty="no transitions",
    )
