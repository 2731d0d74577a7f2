"""Which release has installed its functions, triggers, views and state lists in a database.

Tables change by migrations, once each. Everything else is installed: `detent migrate` compares it with what this
release has and replaces what differs. The release number is kept with it and only grows, so that an older release never
replaces what a newer one has installed.
"""

from __future__ import annotations

from dataclasses import dataclass

from detent.errors import ReleaseTooOld
from detent.model import release

__all__ = ["Installed", "is_newer", "refuse_if_newer", "this_release"]


@dataclass(frozen=True, slots=True)
class Installed:
    """What a database says was installed: by which release, and whether that release has finished."""

    release: str
    fingerprint: str
    complete: bool


def this_release() -> str:
    """Return the number of this release."""
    return _text(release.RELEASE)


def is_newer(found: Installed | None) -> bool:
    """Return whether a newer release than this one has installed its parts."""
    return found is not None and _parts(found.release) > release.RELEASE


def refuse_if_newer(database: str, found: Installed | None) -> None:
    """Raise `ReleaseTooOld` if a newer release than this one has installed its parts."""
    if found is not None and is_newer(found):
        raise ReleaseTooOld(database, "nothing was changed", found.release, this_release())


def _parts(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".") if part.isdigit())


def _text(parts: tuple[int, ...]) -> str:
    return ".".join(map(str, parts))
