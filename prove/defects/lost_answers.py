"""Defects in what becomes of a commit whose answer was lost."""

from __future__ import annotations

from prove.defects.defect import Defect, Edit
from prove.defects.proofs import lost_answers

__all__ = ["LOST_ANSWERS"]

_LOST_COMMIT = 'raise DatabaseUnreachable(lost.database, f"the commit did not happen: {lost.detail}") from lost'

LOST_ANSWERS = (
    Defect(
        "lost answer taken for done",
        "store",
        "a COMMIT whose answer was lost is taken for done on PostgreSQL",
        (Edit("store/postgres/commit_block.py", _LOST_COMMIT, "return"),),
        lost_answers("postgres", "work"),
    ),
    Defect(
        "failed commit taken for done",
        "store",
        "an I/O error of COMMIT is taken for success on SQLite",
        (
            Edit(
                "store/sqlite/driver/database.py",
                "raise translated(error, self.name, committing=True) from error",
                "return",
            ),
        ),
        lost_answers("sqlite", "work"),
    ),
)
