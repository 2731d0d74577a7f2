"""Migrations: numbered `.sql` files with tables, constraints and indexes, the same numbers on both databases.

A file is `NNNN_name.sql`. Lines in it that mean something:

- `-- oldest code: N`: the schema that the oldest Detent was made for that may still run with this one. Without the
  line, that is the migration itself.
- `-- one by one`: PostgreSQL runs each statement in a transaction of its own, or in none, so that `CREATE INDEX
  CONCURRENTLY` and `VALIDATE CONSTRAINT` work. A migration that was interrupted starts again from its first statement,
  so each of them must be harmless if it is repeated (`IF NOT EXISTS`).

A released migration is never edited: its checksum is kept in the database, and a database that has another text under
the same number is refused. Values in double braces are not part of the checksum: see `lifecycle_sql`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from detent.errors import SchemaDiffers, SchemaTooNew, SchemaTooOld, SchemaUnreleased
from detent.store.lifecycle_sql import filled
from detent.store.sql_files import Dialect, sql_files

__all__ = ["Applied", "Migration", "check", "check_wording", "is_complete", "load", "names", "pending", "refuse_newer"]

_FILE = re.compile(r"(?P<version>\d{4})_(?P<name>[a-z0-9_]+)")
_OLDEST_CODE = re.compile(r"^-- oldest code: (\d+)$", re.MULTILINE)
_ONE_BY_ONE = re.compile(r"^-- one by one$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Migration:
    """One step of the schema. Its text is read when it is applied: most processes never do."""

    version: int
    name: str
    file: Path
    checksum: str
    oldest_code: int
    dialect: Dialect
    is_one_by_one: bool = False

    @property
    def template(self) -> str:
        """The text of its file."""
        return self.file.read_text(encoding="utf-8")

    @property
    def sql(self) -> str:
        """Its statements, with the values of the lifecycles filled in."""
        return filled(self.template, self.dialect)


@dataclass(frozen=True, slots=True)
class Applied:
    """A migration that a database has taken, as the database says it."""

    version: int
    checksum: str
    oldest_code: int


def load(dialect: Dialect) -> tuple[Migration, ...]:
    """Return the migrations for a kind of database, in order; a gap in the numbers is an error."""
    import hashlib

    found = []
    for file in sql_files(f"{dialect}/schema"):
        if match := _FILE.fullmatch(file.stem):
            text = file.read_text(encoding="utf-8")
            version = int(match["version"])
            oldest = _OLDEST_CODE.search(text)
            found.append(
                Migration(
                    version=version,
                    name=match["name"],
                    file=file,
                    checksum=hashlib.sha256(text.encode()).hexdigest()[:32],
                    oldest_code=int(oldest[1]) if oldest else version,
                    dialect=dialect,
                    is_one_by_one=_ONE_BY_ONE.search(text) is not None,
                )
            )
    assert [m.version for m in found] == list(range(1, len(found) + 1)), "migration numbers have a gap"
    return tuple(found)


def check(database: str, known: Sequence[Migration], applied: Mapping[int, Applied]) -> None:
    """Raise an error unless this code may work with that schema.

    `SchemaTooNew` if a migration demands newer code, `SchemaTooOld` if migrations are missing, and what `check_wording`
    raises. A newer schema whose migrations allow this code is fine.
    """
    check_wording(database, known, applied)
    newest_known = known[-1].version
    newest = max(applied, default=0)
    demanded = max((step.oldest_code for step in applied.values()), default=0)
    if demanded > newest_known:
        raise SchemaTooNew(database, f"a migration demands code that knows schema {demanded}", newest, newest_known)
    if newest < newest_known:
        count = newest_known - newest
        missing = "1 migration is missing" if count == 1 else f"{count} migrations are missing"
        raise SchemaTooOld(database, missing, newest, newest_known)


def check_wording(database: str, known: Sequence[Migration], applied: Mapping[int, Applied]) -> None:
    """Raise an error if migrations were applied in another wording, or if the list of them has a hole.

    `SchemaUnreleased` if the first migration differs: unreleased versions of Detent had others. `SchemaDiffers` if a
    later one differs, or if a later one was applied and an earlier one was not.
    """
    newest = max(applied, default=0)
    differ = [step for step in known if step.version in applied and applied[step.version].checksum != step.checksum]
    if differ and differ[0].version == 1:
        raise SchemaUnreleased(database, "nothing was changed", newest)
    holes = [step for step in known if step.version < newest and step.version not in applied]
    if holes:
        found = f"though {newest:04} is: the contents of such a database are unknown"
        raise SchemaDiffers(database, f"{found}; restore a backup", names(holes), missing=True)
    if differ:
        allowed = "the Detent that migrated it, or a new database; a migration is never edited, a new one follows it"
        raise SchemaDiffers(database, f"allowed: {allowed}", names(differ))


def refuse_newer(database: str, known: Sequence[Migration], applied: Mapping[int, Applied]) -> None:
    """Raise `SchemaTooNew` if the database has migrations that this release does not know: it cannot migrate it."""
    newest = max(applied, default=0)
    if newest > known[-1].version:
        raise SchemaTooNew(database, "nothing was changed", newest, known[-1].version)


def is_complete(known: Sequence[Migration], applied: Mapping[int, Applied]) -> bool:
    """Return whether the database has all migrations of this release, as they are here, and no others."""
    return {step.version: step.checksum for step in known} == {
        version: step.checksum for version, step in applied.items()
    }


def pending(known: Sequence[Migration], applied: Mapping[int, Applied]) -> tuple[Migration, ...]:
    """Return the migrations still to apply."""
    return tuple(migration for migration in known if migration.version not in applied)


def names(steps: Sequence[Migration]) -> tuple[str, ...]:
    """Return their names: `0001_tables`."""
    return tuple(f"{step.version:04}_{step.name}" for step in steps)
