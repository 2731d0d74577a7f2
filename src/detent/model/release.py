"""The number of this release. It only grows, so two programs on one database can tell which of them is newer."""

from __future__ import annotations

__all__ = ["RELEASE"]

RELEASE = (0, 1, 0)
"""The parts of `detent.__version__`; a test keeps them equal."""
