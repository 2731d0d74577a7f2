"""The root of all errors, and what a stored one comes down to."""

from __future__ import annotations

from typing import Any

__all__ = ["DetentError", "Refused", "clipped", "essence"]


_LINE_MAX = 300
_VALUE_MAX = 200


def clipped(value: str) -> str:
    """Return a value as a message shows it: one that is too long is cut, with its length."""
    return value if len(value) <= _VALUE_MAX else f"{value[:_VALUE_MAX]}… ({len(value):,} characters)"


def essence(error: str | None, *, letters_max: int = _LINE_MAX) -> str:
    """What a stored error comes down to, in one line: of a traceback the line that names the exception, which is not
    the last one where its message has several; of anything else the first line. Cut where it is too long to be read
    beside others; the job has all of it."""
    lines = (error or "").strip().split("\n")
    frames = [place for place, text in enumerate(lines) if text.startswith(('  File "', "  |   File"))]
    after = (text.removeprefix("  | ") for text in lines[frames[-1] + 1 if frames else 0 :])
    line = next((text for text in after if text[:1].strip()), "")
    return line if len(line) <= letters_max else f"{line[: letters_max - 1]}…"


class DetentError(Exception):
    """The root: catch this to catch everything Detent raises on purpose."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by fields, whether they were given by position or by keyword, so that process pools pass errors on."""
        return _rebuilt, (type(self), self.args, dict(self.__dict__))


def _rebuilt(kind: type[DetentError], args: tuple[Any, ...], fields: dict[str, Any]) -> DetentError:
    error = kind.__new__(kind)
    error.args = args
    error.__dict__.update(fields)
    return error


class Refused(DetentError):
    """The engine said no, and nothing was changed."""
