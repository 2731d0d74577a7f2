"""Which release has installed its functions, triggers, views and state lists in a database.

Tables change by migrations, once each. Everything else is installed: `detent migrate` compares it with what this
release has and replaces what differs. The release number is kept with it and only grows, so that an older release never
replaces what a newer one has installed.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

from detent.errors import ReleaseTooOld
from detent.model import database_facts
from detent.store.lifecycle_sql import values
from detent.store.sql_files import Dialect, Part, parts, sql_text, texts

__all__ = ["Installed", "fingerprint", "is_newer", "refuse_if_newer", "this_release"]

_PARTS: tuple[Part, ...] = ("views", "functions", "triggers")


@dataclass(frozen=True, slots=True)
class Installed:
    """What a database says was installed: by which release, and whether that release has finished."""

    release: str
    fingerprint: str
    complete: bool


def this_release() -> str:
    """Return the number of this release."""
    return _text(database_facts.RELEASE)


@functools.cache
def fingerprint(dialect: Dialect) -> str:
    """Return what distinguishes the installed parts of this release from those of any other.

    It is a digest of the SQL files and of the values of the lifecycles. Every store asks for it when it is opened, so
    nothing is filled in or parsed, and the files are read once in a process.
    """
    import hashlib

    digest = hashlib.sha256(repr(sorted(values(dialect).items())).encode())
    for name, text in texts(f"{dialect}/schema"):
        digest.update(f"{name}\n{text}".encode())
    if dialect == "postgres":
        digest.update(sql_text("ops/ops_schema.sql").encode())
    for part in _PARTS:
        for text in parts(dialect, part):
            digest.update(text.encode())
    return digest.hexdigest()[:32]


def is_newer(found: Installed | None) -> bool:
    """Return whether a newer release than this one has installed its parts."""
    return found is not None and _parts(found.release) > database_facts.RELEASE


def refuse_if_newer(database: str, found: Installed | None) -> None:
    """Raise `ReleaseTooOld` if a newer release than this one has installed its parts."""
    if found is not None and is_newer(found):
        raise ReleaseTooOld(database, "nothing was changed", found.release, this_release())


def _parts(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".") if part.isdigit())


def _text(parts: tuple[int, ...]) -> str:
    return ".".join(map(str, parts))
