"""What a migration on PostgreSQL may do to a table that has rows, while jobs run."""

from __future__ import annotations

import re

__all__ = ["complaints"]

_NEW_TABLE = re.compile(r"^CREATE TABLE detent\.(\w+)", re.MULTILINE)
_RULES = (
    (re.compile(r"CREATE (?:UNIQUE )?INDEX (?!CONCURRENTLY)[^;]*? ON detent\.(\w+)"), "CREATE INDEX CONCURRENTLY"),
    (
        re.compile(r"ALTER TABLE detent\.(\w+)[^;]*?ADD CONSTRAINT \w+ (?:CHECK|FOREIGN KEY)(?![^;]*NOT VALID)"),
        "ADD CONSTRAINT ... NOT VALID, and VALIDATE CONSTRAINT after it",
    ),
    (re.compile(r"ALTER TABLE detent\.(\w+)[^;]*?ADD CONSTRAINT \w+ (?:UNIQUE|PRIMARY KEY) \("), "ADD ... USING INDEX"),
    (re.compile(r"ALTER TABLE detent\.(\w+)[^;]*?SET NOT NULL"), "a CHECK that was validated before SET NOT NULL"),
    (re.compile(r"ALTER TABLE detent\.(\w+)[^;]*?ALTER COLUMN \w+ (?:SET DATA )?TYPE"), "a new column"),
    (re.compile(r"ALTER TABLE detent\.(\w+)[^;]*?ADD COLUMN [^;]*?DEFAULT \w+\("), "a default that is a constant"),
    (re.compile(r"(?:UPDATE|DELETE FROM|LOCK TABLE) detent\.(\w+)"), "the code of a verb, in portions"),
)
_ALONE = re.compile(r"\b(?:CONCURRENTLY|VALIDATE CONSTRAINT)\b")


def complaints(sql: str) -> list[str]:
    """Return what would keep writers waiting while a whole table is read, and what to do instead."""
    sql = re.sub(r"--(?! one by one).*", "", sql)
    new = set(_NEW_TABLE.findall(sql))
    found = [
        f"{match[0].split(chr(10))[0]}: use {instead}"
        for rule, instead in _RULES
        for match in rule.finditer(sql)
        if match[1] not in new
    ]
    if _ALONE.search(sql) and "-- one by one" not in sql:
        found.append("CONCURRENTLY and VALIDATE CONSTRAINT: the migration needs the line `-- one by one`")
    return found
