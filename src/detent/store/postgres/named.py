"""`:name` parameters in a user's statement, as on SQLite, for a driver that writes them %(name)s."""

from __future__ import annotations

import re
from collections.abc import Container

__all__ = ["translate"]

# What a colon or a percent sign may stand in without meaning anything to us, and then the two themselves.
_TOKEN = re.compile(
    r"""
      (?P<quiet>
          [eE]'(?:[^'\\]|\\.|'')*' | '(?:[^']|'')*' | "(?:[^"]|"")*"
        | \$(?P<tag>[A-Za-z_]\w*)?\$.*?\$(?(tag)(?P=tag))\$
        | --[^\n]* | /\*.*?\*/ | ::
      )
      | (?P<param>:(?P<name>[A-Za-z_]\w*))
      | (?P<percent>%)
    """,
    re.VERBOSE | re.DOTALL,
)


def translate(sql: str, known: Container[str]) -> str:
    """The statement for psycopg: `:name` becomes %(name)s where `name` is known, and every other % is doubled.

    Strings, quoted names, dollar quotes, comments and casts are left as they are.
    """

    def written(found: re.Match[str]) -> str:
        if found["param"] and found["name"] in known:
            return f"%({found['name']})s"
        return found[0].replace("%", "%%")

    return _TOKEN.sub(written, sql)
