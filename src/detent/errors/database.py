"""Errors of the database, as opposed to errors of a request."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from detent.errors.base import DetentError

__all__ = [
    "OUTAGES",
    "DatabaseBusy",
    "DatabaseError",
    "DatabaseForbidden",
    "DatabaseFull",
    "DatabaseInaccessible",
    "DatabaseReadOnly",
    "DatabaseUnreachable",
    "GuardViolation",
    "LifecycleTooOld",
    "NotADatabase",
    "OutcomeUnknown",
    "ReleaseTooOld",
    "SchemaDiffers",
    "SchemaMissing",
    "SchemaTooNew",
    "SchemaTooOld",
    "SchemaUnreleased",
    "UnknownState",
]


@dataclass(eq=False)
class DatabaseError(DetentError):
    """The database failed, not the request. `database` never contains a password."""

    database: str
    detail: str

    def __str__(self) -> str:
        return f"{self._says()} ({self.database}): {self.detail}"

    def _says(self) -> str:
        return "the database failed"


class DatabaseUnreachable(DatabaseError):
    """No connection could be made."""

    def _says(self) -> str:
        return "the database cannot be reached"


class DatabaseInaccessible(DatabaseUnreachable):
    """The login is refused, or the database or its directory does not exist. Waiting does not help."""


class DatabaseBusy(DatabaseError):
    """Locked, deadlocked or out of connections; nothing was written, and a retry may succeed."""

    def _says(self) -> str:
        return "the database is busy, nothing was written"


class DatabaseFull(DatabaseError):
    """No space left; nothing was written."""

    def _says(self) -> str:
        return "the database has no space left, nothing was written"


class DatabaseReadOnly(DatabaseError):
    """The database accepts no writes."""

    def _says(self) -> str:
        return "the database takes no writes"


class DatabaseForbidden(DatabaseError):
    """The login lacks a privilege. Grant it a role that has it (`detent migrate --roles`)."""

    def _says(self) -> str:
        return "the database does not permit this login to do that"


class NotADatabase(DatabaseError):
    """The path or address is not a database that Detent can use."""

    def _says(self) -> str:
        return "this is not a database Detent can use"


class OutcomeUnknown(DatabaseError):
    """The connection was lost during COMMIT, which may or may not have happened. Check before you act."""

    def _says(self) -> str:
        return "the connection was lost during COMMIT, its outcome is unknown"


class SchemaMissing(DatabaseError):
    """The database has no Detent schema, and creating one is not allowed."""

    def _says(self) -> str:
        return "there is no Detent schema here"


@dataclass(eq=False)
class SchemaTooNew(DatabaseError):
    """A newer version of Detent has migrated the database; nothing was changed."""

    found: int
    known: int

    def _says(self) -> str:
        return (
            f"schema {self.found} is newer than this version of Detent, which knows up to {self.known}; upgrade Detent"
        )


@dataclass(eq=False)
class SchemaTooOld(DatabaseError):
    """The schema is older than this version of Detent needs; nothing was changed."""

    found: int
    known: int

    def _says(self) -> str:
        return (
            f"schema {self.found} is older than this version of Detent, which needs {self.known}; run `detent migrate`"
        )


@dataclass(eq=False)
class SchemaDiffers(DatabaseError):
    """Migrations were applied with another text than this version of Detent has, or (`missing`) were left out; nothing
    was changed."""

    migrations: Sequence[str]
    missing: bool = False

    def _says(self) -> str:
        if self.missing:
            listed = ", ".join(self.migrations)
            return f"{listed} {'are' if len(self.migrations) > 1 else 'is'} not in its list of migrations"
        return f"{', '.join(self.migrations)} were applied with another text than this version of Detent has"


@dataclass(eq=False)
class SchemaUnreleased(DatabaseError):
    """An unreleased version of Detent created the database; nothing was changed."""

    found: int

    def _says(self) -> str:
        return (
            f"schema {self.found} was created by an unreleased version of Detent and cannot be used; use a new "
            "database, or remove Detent's tables from this one, and run `detent migrate`"
        )


@dataclass(eq=False)
class ReleaseTooOld(DatabaseError):
    """A newer release has installed its functions, triggers and views; an older one does not replace them."""

    found: str
    known: str

    def _says(self) -> str:
        return (
            f"Detent {self.found} has installed its functions, triggers and views in this database, and this is the "
            f"older Detent {self.known}, which does not replace them; run `detent migrate` of {self.found} or later"
        )


@dataclass(eq=False)
class LifecycleTooOld(DatabaseError):
    """An older version of an attached lifecycle would replace the newer one that the database has."""

    lifecycle: str
    found: int
    declared: int

    def _says(self) -> str:
        return (
            f"lifecycle {self.lifecycle!r} version {self.declared} is older than version {self.found}, which the "
            f"database has; use the release that declares version {self.found} or a later one"
        )


@dataclass(eq=False)
class UnknownState(DatabaseError):
    """A row is in a state that this version does not know; nothing was changed."""

    entity: str
    entity_id: str
    state: str
    known: Sequence[str]

    def _says(self) -> str:
        return (
            f"{self.entity} {self.entity_id} is in state {self.state!r}, which this version does not know "
            f"(known: {', '.join(self.known)})"
        )


class GuardViolation(DatabaseError):
    """A guard or constraint of the database refused a statement; nothing was written."""

    def _says(self) -> str:
        return "a guard of the database refused"


OUTAGES = (DatabaseUnreachable, DatabaseBusy, DatabaseFull, DatabaseReadOnly, OutcomeUnknown, SchemaMissing)
"""Errors that affect every call. The same call may succeed later, so they do not count against a job."""
