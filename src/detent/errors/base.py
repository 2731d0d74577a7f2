"""The base classes of all errors, and short forms of stored errors."""

from __future__ import annotations

from typing import Any

__all__ = ["DetentError", "Refused", "clipped", "essence", "is_step_note", "step_note"]


_LINE_MAX = 300
_VALUE_MAX = 200
_IN_STEP = "in step '"


def clipped(value: str) -> str:
    """Return a value as a message shows it: one that is too long is cut, with its length."""
    return value if len(value) <= _VALUE_MAX else f"{value[:_VALUE_MAX]}… ({len(value):,} characters)"


def step_note(path: str) -> str:
    """Return the note that an error gets when it leaves a step of a workflow. `essence` shows it."""
    return f"{_IN_STEP}{path}'"


def is_step_note(note: object) -> bool:
    """Return whether a note of an error, or a line of its text, names the step in which it was raised."""
    return isinstance(note, str) and note.startswith(_IN_STEP)


def essence(error: str | None, *, letters_max: int = _LINE_MAX) -> str:
    """Return a stored error as one line: of a traceback, the line that names the exception (not the last one if its
    message has several lines), and the step of a workflow in which it was raised; of any other text, the first line. A
    long line is cut; the job has the whole error."""
    lines = (error or "").strip().split("\n")
    frames = [place for place, text in enumerate(lines) if text.startswith(('  File "', "  |   File"))]
    after = (text.removeprefix("  | ") for text in lines[frames[-1] + 1 if frames else 0 :])
    line = next((text for text in after if text[:1].strip()), "")
    short = line if len(line) <= letters_max else f"{line[: letters_max - 1]}…"
    step = next((text for text in after if is_step_note(text)), None)
    return short if step is None else f"{short} ({step})"


class DetentError(Exception):
    """The base class of all errors that Detent raises."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by fields, however they were given, so that process pools can pass errors on."""
        return _rebuilt, (type(self), self.args, dict(self.__dict__))


def _rebuilt(kind: type[DetentError], args: tuple[Any, ...], fields: dict[str, Any]) -> DetentError:
    error = kind.__new__(kind)
    error.args = args
    error.__dict__.update(fields)
    return error


class Refused(DetentError):
    """A request was refused, and nothing was changed."""
