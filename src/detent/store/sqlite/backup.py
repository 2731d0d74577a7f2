"""A copy of a SQLite file that is in use: consistent, checked, and complete or not there."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress

from detent.errors import DatabaseInaccessible, InvalidInput
from detent.model.ids import new_file_token
from detent.model.records import Violation
from detent.store.sqlite.driver.database_file import file_url
from detent.store.sqlite.driver.failures import translating

__all__ = ["back_up"]

_PAGES_AT_ONCE = 1_000


def back_up(
    source: sqlite3.Connection,
    target: str,
    check: Callable[[str], list[Violation]],
    *,
    force: bool,
    watch: Callable[[int, int], None],
) -> list[Violation]:
    """Copy the snapshot that `source` has open into a new file, sync it, and check it.

    The file has its name when it is complete. Writers of the source do not wait. If `check` finds violations, nothing
    is left, except with `force`. Return what was found. `InvalidInput` if there is a file already.
    """
    with _taking_name(target) as (partial, keep):
        with translating(file_url(target)), closing(sqlite3.connect(partial, isolation_level=None)) as copy:
            # A copy that is not complete is deleted, so it needs no journal.
            copy.execute("PRAGMA journal_mode = OFF")
            source.backup(copy, pages=_PAGES_AT_ONCE, progress=lambda _, left, total: watch(total - left, total))
        found = check(partial)
        _sync(partial)
        if force or not found:
            keep()
        return found


@contextmanager
def _taking_name(target: str) -> Iterator[tuple[str, Callable[[], None]]]:
    """Create an empty file beside `target`. Yield its path, and what gives it the name `target`. Afterwards nothing but
    `target` is left."""
    directory, name = os.path.split(os.path.abspath(target))
    partial = os.path.join(directory, f".{name}.{new_file_token()}.partial")

    def refused() -> InvalidInput:
        return InvalidInput("TO", f"{target}, which exists", "a path where there is nothing yet")

    def keep() -> None:
        try:
            os.link(partial, target)  # unlike a rename, it never replaces a file
        except FileExistsError:
            raise refused() from None
        os.unlink(partial)
        _sync(directory)

    if os.path.lexists(target):
        raise refused()
    try:
        os.close(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        yield partial, keep
    except OSError as error:
        raise DatabaseInaccessible(file_url(target), f"{error.filename or target}: {error.strerror}") from error
    finally:
        for suffix in ("", "-wal", "-shm"):
            with suppress(FileNotFoundError):
                os.unlink(partial + suffix)


def _sync(path: str) -> None:
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
