"""The file of a database: its path and URL, whether it can be used, and how it is created."""

from __future__ import annotations

import os
import stat
from urllib.parse import unquote

from detent.errors import DatabaseInaccessible, DatabaseReadOnly, DatabaseUnreachable, NotADatabase

__all__ = ["MEMORY", "check_file", "create_file", "file_url", "path_from_url"]

MEMORY = ":memory:"

_ANY_WRITE = 0o222


def path_from_url(rest: str) -> str:
    """Return the path that the last part of a URL names: `%3F` stands for `?`, and `%25` for `%`."""
    return unquote(rest, errors="surrogateescape")


def file_url(path: str) -> str:
    """Return the URL of a file, for messages: `path_from_url` reverses it."""
    return f"sqlite:///{path.replace('%', '%25').replace('?', '%3F')}"


def check_file(path: str, database: str, link: str | None = None) -> bool:
    """Return whether there is a file. Nothing is opened: closing the file would drop SQLite's locks on it.

    `link` is the path as it was given, if that was a symbolic link to `path`. Raises:

    - `DatabaseInaccessible` if the path cannot be reached, or for a link to nothing: its target may be on a volume that
      is not mounted, and a database must not be created there;
    - `NotADatabase` for a directory or a device;
    - `DatabaseReadOnly` if the file, or its directory, in which the log is written, is read-only.
    """
    parent = os.path.dirname(path)
    try:
        if not stat.S_ISDIR(os.stat(parent).st_mode):
            raise DatabaseInaccessible(database, f"{parent} is not a directory")
        found = _stat_or_none(path)
    except OSError as error:
        raise DatabaseInaccessible(database, f"{error.filename}: {error.strerror}") from None
    if found is None and link is not None:
        raise DatabaseInaccessible(database, f"{link} is a symbolic link to {path}, and there is no such file")
    if found is not None:
        if stat.S_ISDIR(found.st_mode):
            raise NotADatabase(database, "found a directory; allowed: a SQLite file, or a path where one can be made")
        if not stat.S_ISREG(found.st_mode):
            raise NotADatabase(database, "found something that is not a file; allowed: a SQLite file")
        if not os.access(path, os.R_OK):
            raise DatabaseInaccessible(database, "this user may not read the file")
        if not _writable(path, found):
            raise DatabaseReadOnly(database, "the file is read-only")
    if not _writable(parent, os.stat(parent)):
        raise DatabaseReadOnly(database, f"the directory {parent} is read-only")
    return found is not None


def create_file(path: str, database: str) -> None:
    """Create an empty file that only its owner may read. An existing file stays as it is."""
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        return
    except PermissionError as error:
        raise DatabaseReadOnly(database, f"{path}: {error.strerror}") from None
    except OSError as error:
        raise DatabaseUnreachable(database, f"{path}: {error.strerror}") from None


def _stat_or_none(path: str) -> os.stat_result | None:
    try:
        return os.stat(path)
    except FileNotFoundError:
        return None


def _writable(path: str, found: os.stat_result) -> bool:
    # Root may write to anything; a file without any write permission counts as read-only for root as well.
    return bool(found.st_mode & _ANY_WRITE) and os.access(path, os.W_OK)
