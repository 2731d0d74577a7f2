"""A context for functions that are called directly and do not look at it."""

from __future__ import annotations

from typing import Any

NOBODY: Any = object()
