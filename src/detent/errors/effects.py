"""Errors about effects outside of this database."""

from __future__ import annotations

from dataclasses import dataclass

from detent.errors.base import Refused

__all__ = ["MarkerMissing", "NotUnknown"]


@dataclass(eq=False)
class NotUnknown(Refused):
    """The job is quarantined, but not because its effect is unknown."""

    job_id: int
    reason: str | None

    def __str__(self) -> str:
        return (
            f"job {self.job_id} is quarantined for {self.reason or 'no recorded reason'!r}, not as unknown; "
            f"only a job whose effect is unknown can be settled: retry, discard or force this one"
        )


@dataclass(eq=False)
class MarkerMissing(Refused):
    """Another database has no table for markers of commits; nothing was run in it."""

    table: str
    ddl: str

    def __str__(self) -> str:
        return (
            f"a commit in another database needs the table {self.table} there, and it is missing; "
            f"create it with app.prepare_foreign(connection), or with:\n{self.ddl}"
        )
