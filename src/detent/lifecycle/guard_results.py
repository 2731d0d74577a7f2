"""The guard of jobs with a door for results that are dropped when their time is over.

`result_guards` gives the text of the migration `result_guards` for each database: the guard that `guard.job_guards` has
written, and before all else that door. `python -m detent.lifecycle.guard_results` writes it; a test keeps it equal.
"""

from __future__ import annotations

from detent.lifecycle.guard import Dialect, job_guards, write_out

__all__ = ["result_guards"]

_HEADER = """\
-- The guard of jobs with a door for results whose time is over: by `python -m detent.lifecycle.guard_results`.
-- A test keeps this file equal to the lifecycle: change the lifecycle, not this file.

"""
_STAYS = ("error", "finished_at", "attempt", "ended", "spared", "lease_id", "leased_at", "started_at", "committed_at")


def result_guards(dialect: Dialect) -> str:
    """The guard of jobs, which lets one change of a succeeded job through: its result goes, and nothing else."""
    guards = job_guards(dialect)
    if dialect == "postgres":
        begin, end = "CREATE FUNCTION detent.job_guard()", "END $$;\n"
        guard = _from_to(guards, begin, end).replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION", 1)
        door = f"  IF {_door('IS NOT DISTINCT FROM')} THEN\n    RETURN NEW;\n  END IF;\n"
        return _HEADER + guard.replace("\nBEGIN\n", f"\nBEGIN\n{door}", 1)
    guard = _from_to(guards, "CREATE TRIGGER detent_job_guard\n", "\nEND;\n")
    door = f"    WHEN {_door('IS')}\n      THEN NULL\n"
    return _HEADER + "DROP TRIGGER detent_job_guard;\n" + guard.replace("  SELECT CASE\n", f"  SELECT CASE\n{door}", 1)


def _door(same: str) -> str:
    stays = " AND ".join(f"NEW.{column} {same} OLD.{column}" for column in _STAYS)
    return (
        "OLD.state = 'succeeded' AND NEW.state = 'succeeded' AND NEW.result IS NULL"
        " AND OLD.result_dropped_at IS NULL AND NEW.result_dropped_at IS NOT NULL"
        f"\n     AND {stays}"
    )


def _from_to(text: str, begin: str, end: str) -> str:
    start = text.index(begin)
    return text[start : text.index(end, start) + len(end)]


if __name__ == "__main__":
    write_out("result_guards", result_guards)
