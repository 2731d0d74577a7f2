"""Stored text made safe for a terminal: whoever wrote it must not be able to move the reader's cursor or reorder a
line. What is dangerous is shown as an escape; everything else stays as it is."""

from __future__ import annotations

import re

__all__ = ["block", "json_safe", "line"]

# C0 and C1 controls, DEL, marks that reorder text or break lines, invisible tags, and lone surrogates.
_ALWAYS = "\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ufff9-\ufffb\U000e0000-\U000e007f\ud800-\udfff"
_IN_A_LINE = re.compile(f"[\x00-\x1f{_ALWAYS}]")
_IN_A_BLOCK = re.compile(f"[\x00-\x08\x0b-\x1f{_ALWAYS}]")
_IN_JSON = re.compile(f"[{_ALWAYS}]")


def line(text: str) -> str:
    """On one line: line breaks and tabs are shown as escapes too."""
    return _IN_A_LINE.sub(_shown, text)


def block(text: str) -> str:
    """Over several lines: line breaks and tabs stay."""
    return _IN_A_BLOCK.sub(_shown, text)


def json_safe(encoded: str) -> str:
    """JSON text without such characters: inside its strings, the only place for them, they become `\\uXXXX`."""
    return _IN_JSON.sub(_json_escape, encoded)


def _shown(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape", "surrogatepass").decode("ascii")


def _json_escape(match: re.Match[str]) -> str:
    units = match[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in range(0, len(units), 2))
