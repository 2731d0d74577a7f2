"""Defects in what a worker may still do when its lease has gone to another one."""

from __future__ import annotations

from prove.defects.defect import Defect, Edit
from prove.defects.proofs import standing_still

__all__ = ["ZOMBIES"]

_FINISH = "store/jobs/functions/job_finish_v2.sql"
_MOMENT = "before job_finish"

ZOMBIES = (
    Defect(
        "no fence, SQLite",
        "store",
        "a worker that stood still ends the attempt of another one on SQLite",
        (
            Edit(
                "store/jobs/sqlite_endings.py",
                "AND state = 'running' AND attempt = coalesce(:attempt, attempt)",
                "AND state = 'running'",
            ),
        ),
        standing_still("sqlite", _MOMENT),
    ),
    Defect(
        "no fence, PostgreSQL",
        "store",
        "a worker that stood still ends the attempt of another one on PostgreSQL",
        (
            Edit(_FINISH, "AND j.attempt = p_attempts[1] AND j.state", "AND j.state"),
            Edit(_FINISH, "AND j.attempt = u.attempt AND j.state", "AND j.state"),
        ),
        standing_still("postgres", _MOMENT),
    ),
)
