"""The functions of this version: their text, what tells them from those of another, and which of them a database has.

A function may change under its name, where its words stay what they are. So a fingerprint of all their texts is kept
beside them in the database: one look at it says whether they are this version's, and costs nothing at the start.
"""

from __future__ import annotations

import re
from functools import cache

from detent.model import release
from detent.store.postgres.driver.pool import Connection
from detent.store.postgres.facade import facade
from detent.store.texts import texts

__all__ = ["MARK", "differing", "digests", "functions", "is_newer", "is_this", "mark", "mark_sql"]

_BODY = re.compile(r"\bAS \$\$(?P<body>.*)\$\$;", re.DOTALL)
_RELEASE = re.compile(r"(\d+(?:\.\d+)*) ")
_INSTALLED = "SELECT proname, prosrc FROM pg_proc WHERE pronamespace = to_regnamespace('detent')"

MARK = "obj_description(to_regprocedure('detent.migrations_v1()'), 'pg_proc')"
"""Where the fingerprint of what was put in place is read; NULL where nobody left one."""


def functions() -> list[tuple[str, str]]:
    """The name and text of every function, verbs and what they share. A quarter of a megabyte, which nobody keeps."""
    return texts("postgres/functions")


@cache
def fingerprint() -> str:
    """What tells the functions of this version from those of any other."""
    import hashlib

    parts = [*(text for _, text in functions()), *facade()]
    return hashlib.sha256("".join(parts).encode()).hexdigest()[:32]


@cache
def digests() -> dict[str, str]:
    """The md5 of the body of every function of this version, by name, as PostgreSQL computes it."""
    import hashlib

    return {name: hashlib.md5(_body(text).encode(), usedforsecurity=False).hexdigest() for name, text in functions()}


def mark_sql() -> str:
    """The statement that leaves the release and the fingerprint of this version."""
    return f"COMMENT ON FUNCTION detent.migrations_v1() IS '{mark()}'"


def is_this(found: str | None) -> bool:
    """Whether a mark is that of this version's functions."""
    return found == mark()


def is_newer(left: str | None) -> bool:
    """Whether a mark was left by a newer release than this one. An older release leaves such functions as they are."""
    found = _RELEASE.match(left or "")
    return found is not None and tuple(map(int, found[1].split("."))) > release.RELEASE


def mark() -> str:
    """The mark of this version."""
    return f"{'.'.join(map(str, release.RELEASE))} {fingerprint()}"


def differing(connection: Connection) -> tuple[str, ...]:
    """The functions that a database has in other words than this version, or not at all, also where somebody changed
    them by hand; `declarations` where what they do is the same, and how they are declared is not. None where they are
    those of a newer release, which are meant to be others."""
    (left,) = connection.execute(f"SELECT {MARK}".encode()).fetchone() or (None,)
    if is_newer(left):
        return ()
    installed: dict[str, set[str]] = {}
    for name, source in connection.execute(_INSTALLED).fetchall():
        installed.setdefault(name, set()).add(source)
    other = tuple(name for name, text in functions() if _body(text) not in installed.get(name, ()))
    return other or (() if is_this(left) else ("declarations",))


def _body(text: str) -> str:
    found = _BODY.search(text)
    assert found is not None, "a function without a body"
    return found["body"]
