"""A guard that is taken out, and the tests that are named for it.

Everything else stays as it is: whatever another layer would still prevent, a test notices that this guard is gone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from prove.defects.defect import Defect, Edit, Room
from prove.defects.proofs import tests

__all__ = ["Mutant"]


@dataclass(frozen=True, slots=True)
class Mutant:
    """The package without one guard, and the tests of which every one fails then."""

    guard: str
    database: Literal["sqlite", "postgres"]
    what: str
    edits: tuple[Edit, ...]
    tests: tuple[str, ...]
    room: Room = "store"

    @property
    def name(self) -> str:
        """For reports."""
        return f"{self.database}: {self.guard}: {self.what}"

    @property
    def defect(self) -> Defect:
        """Return it as one of the defects that the proofs must find."""
        return Defect(self.name, self.room, self.what, self.edits, tests(*self.tests))
