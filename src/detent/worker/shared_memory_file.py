"""A file without a name, for memory that the processes of a worker share."""

from __future__ import annotations

import os
from contextlib import suppress

__all__ = ["open_unnamed_file"]


def open_unnamed_file() -> int:
    """Return a new file that has no name in any directory; in memory if the system supports that."""
    with suppress(AttributeError, OSError):  # not available on every system, and not always permitted
        return os.memfd_create("detent")
    # Imported here because it imports many other modules.
    import tempfile

    with tempfile.TemporaryFile(prefix="detent-") as file:
        return os.dup(file.fileno())
