"""`:name` parameters in a user's statement, as on SQLite, for a driver that writes them %(name)s."""

from __future__ import annotations

import re
from collections.abc import Container

__all__ = ["translate"]

# What a colon or a percent sign may stand in without meaning anything to us, and then the two themselves. A name may
# have a dollar sign in it, and end in e before a quote: neither begins anything then. A colon right after a value is
# that of a slice: x[1:a] names a column, x[1 : :a] a parameter.
_TOKEN = re.compile(
    r"""
      (?P<quiet>
          (?<![\w$])[eE]'(?:[^'\\]|\\.|'')*' | '(?:[^']|'')*' | "(?:[^"]|"")*"
        | (?<![\w$])\$(?P<tag>[^\W\d]\w*)?\$.*?\$(?(tag)(?P=tag))\$
        | --[^\n]* | ::
      )
      | (?P<comment>/\*)
      | (?P<param>(?<![\w\])'"]):(?P<name>[^\W\d]\w*))
      | (?P<percent>%)
    """,
    re.VERBOSE | re.DOTALL,
)
_IN_COMMENT = re.compile(r"/\*|\*/")


def translate(sql: str, known: Container[str]) -> str:
    """The statement for psycopg: `:name` becomes %(name)s where `name` is known, and every other % is doubled.

    Strings, quoted names, dollar quotes, comments (which may be nested) and casts are left as they are.
    """
    parts: list[str] = []
    place = 0
    while (found := _TOKEN.search(sql, place)) is not None:
        parts.append(sql[place : found.start()])
        place = _comment_end(sql, found.end()) if found["comment"] else found.end()
        if found["param"] and found["name"] in known:
            parts.append(f"%({found['name']})s")
        else:
            parts.append(sql[found.start() : place].replace("%", "%%"))
    parts.append(sql[place:])
    return "".join(parts)


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
