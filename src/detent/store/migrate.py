"""Forward migrations: numbered `.sql` files, the same numbers on both databases.

A file is `NNNN_name.sql`. A line `-- oldest code: N` in it says which schema the oldest Detent that may still run with
it was made for; without the line, that is the migration itself. Applied migrations are never edited once released: the
checksum of each is kept with it, and a database that was given another text under the same number is refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from detent.errors import SchemaDiffers, SchemaTooNew, SchemaTooOld
from detent.store.texts import sql_files

__all__ = ["Applied", "Migration", "check", "check_wording", "load", "names", "pending"]

_FILE = re.compile(r"(?P<version>\d{4})_(?P<name>[a-z0-9_]+)")
_OLDEST_CODE = re.compile(r"^-- oldest code: (\d+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Migration:
    """One step of the schema. Its text is read when it is taken: most who know of it never do."""

    version: int
    name: str
    file: Path
    checksum: str
    oldest_code: int

    @property
    def sql(self) -> str:
        """What it does."""
        return self.file.read_text(encoding="utf-8")


@dataclass(frozen=True, slots=True)
class Applied:
    """What a database says about a step it has taken."""

    version: int
    checksum: str
    oldest_code: int


def load(dialect: str) -> tuple[Migration, ...]:
    """The migrations for a kind of database, in order; a gap in the numbers is an error."""
    import hashlib

    found = []
    for file in sql_files(f"{dialect}/schema"):
        if match := _FILE.fullmatch(file.stem):
            sql = file.read_text(encoding="utf-8")
            version = int(match["version"])
            oldest = _OLDEST_CODE.search(sql)
            found.append(
                Migration(
                    version=version,
                    name=match["name"],
                    file=file,
                    checksum=hashlib.sha256(sql.encode()).hexdigest()[:32],
                    oldest_code=int(oldest[1]) if oldest else version,
                )
            )
    assert [m.version for m in found] == list(range(1, len(found) + 1)), "migration numbers have a gap"
    return tuple(found)


def check(database: str, known: Sequence[Migration], applied: Mapping[int, Applied]) -> None:
    """Whether this code may work with that schema. `SchemaTooNew` where a step demands newer code, `SchemaTooOld` where
    steps are missing, `SchemaDiffers`. A newer schema whose steps allow this code is fine."""
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
    """`SchemaDiffers` where a step was taken in other words than those that this code knows it in, or where the list of
    steps has a hole: a later one was taken, an earlier one was not."""
    newest = max(applied, default=0)
    holes = [step for step in known if step.version < newest and step.version not in applied]
    if holes:
        found = f"though {newest:04} is: nobody knows what is in such a database"
        raise SchemaDiffers(database, f"{found}; restore a backup", names(holes), missing=True)
    differ = [step for step in known if step.version in applied and applied[step.version].checksum != step.checksum]
    if differ:
        allowed = (
            "the Detent that migrated it, or a database of its own; a migration is never edited, a new one follows"
        )
        raise SchemaDiffers(database, f"allowed: {allowed}", names(differ))


def pending(known: Sequence[Migration], applied: Mapping[int, Applied]) -> tuple[Migration, ...]:
    """The steps still to take."""
    return tuple(migration for migration in known if migration.version not in applied)


def names(steps: Sequence[Migration]) -> tuple[str, ...]:
    """As people know them: `0001_record`."""
    return tuple(f"{step.version:04}_{step.name}" for step in steps)
