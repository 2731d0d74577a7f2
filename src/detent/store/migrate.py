"""Forward migrations: numbered `.sql` files, the same numbers on both databases.

A file is `NNNN_name.sql`. A line `-- oldest code: N` in it says which schema the oldest Detent that may still run with
it was made for; without the line, that is the migration itself. Applied migrations are never edited once released: the
checksum of each is kept with it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files

from detent.errors import SchemaTooNew, SchemaTooOld

__all__ = ["Applied", "Migration", "check", "load", "names", "pending"]

_FILE = re.compile(r"(?P<version>\d{4})_(?P<name>[a-z0-9_]+)\.sql")
_OLDEST_CODE = re.compile(r"^-- oldest code: (\d+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Migration:
    """One step of the schema."""

    version: int
    name: str
    sql: str
    checksum: str
    oldest_code: int


@dataclass(frozen=True, slots=True)
class Applied:
    """What a database says about a step it has taken."""

    version: int
    checksum: str
    oldest_code: int


def load(package: str) -> tuple[Migration, ...]:
    """The migrations shipped in `package` (a directory of .sql files), in order; a gap in the numbers is an error."""
    found = []
    for file in files(package).joinpath("schema").iterdir():
        if match := _FILE.fullmatch(file.name):
            sql = file.read_text(encoding="utf-8")
            version = int(match["version"])
            oldest = _OLDEST_CODE.search(sql)
            found.append(
                Migration(
                    version=version,
                    name=match["name"],
                    sql=sql,
                    checksum=hashlib.sha256(sql.encode()).hexdigest()[:32],
                    oldest_code=int(oldest[1]) if oldest else version,
                )
            )
    found.sort(key=lambda migration: migration.version)
    assert [m.version for m in found] == list(range(1, len(found) + 1)), "migration numbers have a gap"
    return tuple(found)


def check(database: str, known: Sequence[Migration], applied: Mapping[int, Applied]) -> None:
    """Whether this code may work with that schema. `SchemaTooNew` where a step demands newer code, `SchemaTooOld` where
    steps are missing. A newer schema whose steps allow this code is fine."""
    newest_known = known[-1].version
    newest = max(applied, default=0)
    demanded = max((step.oldest_code for step in applied.values()), default=0)
    if demanded > newest_known:
        raise SchemaTooNew(database, f"a migration demands code that knows schema {demanded}", newest, newest_known)
    if newest < newest_known:
        raise SchemaTooOld(database, f"{newest_known - newest} migrations are missing", newest, newest_known)


def pending(known: Sequence[Migration], applied: Mapping[int, Applied]) -> tuple[Migration, ...]:
    """The steps still to take."""
    return tuple(migration for migration in known if migration.version not in applied)


def names(steps: Sequence[Migration]) -> tuple[str, ...]:
    """As people know them: `0001_record`."""
    return tuple(f"{step.version:04}_{step.name}" for step in steps)
