"""The result of a check, and the words that several checks use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

__all__ = ["Finding", "duration", "first_of", "size", "warn_if"]

_NAMED_MAX = 3


class Finding(Struct):
    """The result of one check."""

    check: str
    verdict: Literal["ok", "warn", "fail"]
    detail: str


def warn_if(check: str, detail: str, caution: str | None) -> Finding:
    """Return a warning if there is a caution."""
    return Finding(check, "ok", detail) if caution is None else Finding(check, "warn", f"{detail}: {caution}")


def first_of(names: Sequence[str]) -> str:
    """Return the first few names, and how many more there are."""
    more = f" and {len(names) - _NAMED_MAX} more" if len(names) > _NAMED_MAX else ""
    return ", ".join(names[:_NAMED_MAX]) + more


def size(count: float) -> str:
    """Return a number of bytes for people, such as `1.5 GB`."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} bytes" if unit == "bytes" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"


def duration(seconds: float) -> str:
    """Return a duration for people, such as `3.2 h`."""
    for unit, most in (("s", 120), ("min", 7200), ("h", 172_800)):
        if seconds < most:
            return f"{seconds / {'s': 1, 'min': 60, 'h': 3600}[unit]:.3g} {unit}"
    return f"{seconds / 86_400:.3g} days"
