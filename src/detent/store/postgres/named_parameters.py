"""`:name` parameters in a user's statement, as on SQLite, for drivers that write them in other ways."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator
from functools import lru_cache

__all__ = ["positional", "translate"]

KEPT_MAX = 256
KEPT_LENGTH_MAX = 4096
"""How many statements are kept translated, and how long each may be."""

# First the tokens in which a colon has no meaning for us, then the colon itself. A name may contain a dollar sign, or
# end in e before a quote: neither begins a new token then. A colon right after a value is that of a slice: x[1:a]
# names a column, x[1 : :a] a parameter.
_TOKEN = re.compile(
    r"""
      (?P<quiet>
          (?<![\w$])[eE]'(?:[^'\\]|\\.|'')*' | '(?:[^']|'')*' | "(?:[^"]|"")*"
        | (?<![\w$])\$(?P<tag>[^\W\d]\w*)?\$.*?\$(?(tag)(?P=tag))\$
        | --[^\n]* | ::
      )
      | (?P<comment>/\*)
      | (?P<param>(?<![\w\])'"]):(?P<name>[^\W\d]\w*))
    """,
    re.VERBOSE | re.DOTALL,
)
_IN_COMMENT = re.compile(r"/\*|\*/")


def translate(sql: str, known: Container[str]) -> str:
    """The statement for psycopg: `:name` becomes %(name)s where `name` is known, and every other % is doubled."""
    return "".join(text.replace("%", "%%") + (f"%({name})s" if name else "") for text, name in _parts(sql, known))


def positional(sql: str, known: tuple[str, ...]) -> tuple[bytes, tuple[str, ...]]:
    """The statement for libpq: `:name` becomes $1, $2 where `name` is known; and the names in that order."""
    return _kept(sql, known) if len(sql) <= KEPT_LENGTH_MAX else _positional(sql, known)


def _positional(sql: str, known: tuple[str, ...]) -> tuple[bytes, tuple[str, ...]]:
    places: dict[str, int] = {}
    parts: list[str] = []
    for text, name in _parts(sql, known):
        parts.append(f"{text}${places.setdefault(name, len(places) + 1)}" if name else text)
    return "".join(parts).encode(), tuple(places)


_kept = lru_cache(KEPT_MAX)(_positional)


def _parts(sql: str, known: Container[str]) -> Iterator[tuple[str, str | None]]:
    """Text, and the parameter that follows it, if one does. Strings, quoted names, dollar quotes, comments (which may
    be nested) and casts are text."""
    begun = place = 0
    while (found := _TOKEN.search(sql, place)) is not None:
        place = _comment_end(sql, found.end()) if found["comment"] else found.end()
        if found["param"] and found["name"] in known:
            yield sql[begun : found.start()], found["name"]
            begun = place
    yield sql[begun:], None


def _comment_end(sql: str, place: int) -> int:
    """Where a comment ends that began before `place`; comments inside it end first."""
    depth = 1
    while depth:
        found = _IN_COMMENT.search(sql, place)
        if found is None:
            return len(sql)
        depth += 1 if found[0] == "/*" else -1
        place = found.end()
    return place
