"""Stored text made safe for a terminal: control characters that move the cursor or reorder text are shown as
escapes."""

from __future__ import annotations

import re

__all__ = ["block", "json_safe", "line"]

# C0 and C1 controls, DEL, marks that reorder text or break lines, invisible tags, and lone surrogates.
_ALWAYS = "\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ufff9-\ufffb\U000e0000-\U000e007f\ud800-\udfff"
_IN_A_LINE = re.compile(f"[\x00-\x1f{_ALWAYS}]")
_IN_A_BLOCK = re.compile(f"[\x00-\x08\x0b-\x1f{_ALWAYS}]")
_IN_JSON = re.compile(f"[{_ALWAYS}]")


def line(text: str) -> str:
    """Return text for one line: line breaks and tabs are escaped too."""
    return _IN_A_LINE.sub(_shown, text)


def block(text: str) -> str:
    """Return text for several lines: line breaks and tabs stay."""
    return _IN_A_BLOCK.sub(_shown, text)


def json_safe(encoded: str) -> str:
    """Return JSON text without such characters: inside strings, the only place for them, they become `\\uXXXX`."""
    return _IN_JSON.sub(_json_escape, encoded)


def _shown(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape", "surrogatepass").decode("ascii")


def _json_escape(match: re.Match[str]) -> str:
    units = match[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in range(0, len(units), 2))
