"""Error texts and event messages, made storable. They are never refused.

The error of a failing function must be recorded whatever it contains; otherwise the failure could not be recorded, and
the job would be retried for ever. So NUL and lone surrogates become U+FFFD, a `__str__` that raises is tolerated, and a
long text is cut in the middle, with a note of its length and hash.
"""

from __future__ import annotations

import hashlib
import re
import sys
import traceback

from detent.errors import essence

__all__ = ["error_kind", "error_text", "message_text"]

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_FRAMES_MAX = 20
_KIND = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*(?=:|$)")
_KIND_MAX = 80
_NOTE_ROOM = 100


def error_text(error: BaseException | str, bytes_max: int = 16_384) -> str:
    """Return the whole exception chain, each traceback with its innermost frames, in at most `bytes_max` bytes."""
    return _storable(error if isinstance(error, str) else _chain(error), bytes_max)


def error_kind(error: str | None) -> str:
    """Return what a stored error has in common with similar ones: the name of the exception class, or the beginning of
    the text if it names none. Empty if there is no error."""
    line = essence(error, letters_max=sys.maxsize)
    named = _KIND.match(line)
    return named[0] if named else line[:_KIND_MAX]


def message_text(message: object, bytes_max: int = 16_384) -> str:
    """Return the message of an event as text, in at most `bytes_max` bytes."""
    if isinstance(message, bytes | bytearray):
        return _storable(message.decode("utf-8", "replace"), bytes_max)
    return _storable(_text_of(message), bytes_max)


def _chain(error: BaseException) -> str:
    try:
        # The standard formatter handles loops in the chain and a __str__ that raises …
        formatted = traceback.TracebackException.from_exception(error, limit=-_FRAMES_MAX, compact=True)
        return "".join(formatted.format()).rstrip("\n")
    except Exception:
        # … but not every unusual exception class.
        return f"{type.__getattribute__(type(error), '__name__')}: {_text_of(error)}"


def _text_of(value: object) -> str:
    try:
        return str(value)
    except BaseException as failure:
        # Not even SystemExit in a __str__ may keep the failure from being recorded.
        kind = type(value).__name__
        return f"<{kind} whose __str__ raised {type(failure).__name__}>"


def _storable(text: str, bytes_max: int) -> str:
    clean = _UNSTORABLE.sub("\ufffd", text)
    encoded = clean.encode()
    if len(encoded) <= bytes_max:
        return clean
    digest = hashlib.sha256(encoded).hexdigest()[:12]
    note = f"\n… cut: {len(encoded)} bytes in all, sha256 {digest} …\n".encode()
    room = bytes_max - len(note)
    if room < _NOTE_ROOM:
        return encoded[:bytes_max].decode("utf-8", "ignore")
    head, tail = encoded[: room - room // 2], encoded[len(encoded) - room // 2 :]
    return b"".join((head, note, tail)).decode("utf-8", "ignore")
