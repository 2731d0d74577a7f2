"""Text from error paths: made storable, never refused.

What a failing handler says (its exception, its last words) must reach the record whatever it contains, or the failure
itself could not be recorded and the job would come back for ever. So NUL and lone surrogates become U+FFFD, a
`__str__` that raises is survived, and what is too long is cut in the middle with its length and hash noted.
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
    """The whole exception chain, each traceback trimmed to its innermost frames, at most `bytes_max` bytes of UTF-8."""
    return _storable(error if isinstance(error, str) else _chain(error), bytes_max)


def error_kind(error: str | None) -> str:
    """What a stored error has in common with others of its kind: the name of the exception's class, or the first words
    where it names none. Empty where there is no error."""
    line = essence(error, letters_max=sys.maxsize)
    named = _KIND.match(line)
    return named[0] if named else line[:_KIND_MAX]


def message_text(message: object, bytes_max: int = 16_384) -> str:
    """An event's message out of whatever was given for one, at most `bytes_max` bytes of UTF-8."""
    if isinstance(message, bytes | bytearray):
        return _storable(message.decode("utf-8", "replace"), bytes_max)
    return _storable(_said_by(message), bytes_max)


def _chain(error: BaseException) -> str:
    try:
        # The standard formatter survives loops in the chain and a __str__ that raises …
        told = traceback.TracebackException.from_exception(error, limit=-_FRAMES_MAX, compact=True)
        return "".join(told.format()).rstrip("\n")
    except Exception:
        # … but not every exception class that lies about itself.
        return f"{type.__getattribute__(type(error), '__name__')}: {_said_by(error)}"


def _said_by(value: object) -> str:
    try:
        return str(value)
    except BaseException as failure:
        # Even SystemExit out of a __str__ is no reason to lose the record of a failure.
        kind = type(value).__name__
        return f"<{kind} whose text cannot be had: {type(failure).__name__}>"


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
