"""The error for a library that is not installed."""

from __future__ import annotations

__all__ = ["missing"]


def missing(module: str, package: str) -> ImportError:
    """Return the error that a module of this room raises if its library is not installed."""
    return ImportError(f"{module} needs {package}, which is not installed. Run `pip install {package}`.")
