"""The guards of jobs, asked after the row has changed instead of before.

`late_guards` gives the text of the migration `late_guards` for each database: what `guard.job_guards` and
`guard_results` have written, with AFTER for BEFORE. A refusal takes the whole statement back all the same. Asked
before, PostgreSQL locks every row first, and writes that to its log; SQLite reads the row anew. Where a held attempt
may go to every state there is, PostgreSQL compares nothing: its constraint `job_state_known` knows the states, and no
session can switch it off, as it can on SQLite.
`python -m detent.lifecycle.guard_late` writes it; a test keeps it equal.
"""

from __future__ import annotations

from detent.lifecycle.guard import Dialect, held_goes_to, job_guards, write_out
from detent.lifecycle.guard_results import result_guards
from detent.lifecycle.library import JOB

__all__ = ["late_guards"]

_HEADER = """\
-- oldest code: 17
-- The guards of jobs after the change instead of before it: by `python -m detent.lifecycle.guard_late`.
-- A test keeps this file equal to the lifecycle: change the lifecycle, not this file.
--
-- A refusal takes the whole statement back all the same. Asked before, {before}.
-- `detent verify` and `detent repair` of an older Detent take these for missing: use those of this one.

"""
_BEFORE = {
    "postgres": "PostgreSQL locks every row first, and writes that to its log",
    "sqlite": "SQLite reads the row anew",
}


def late_guards(dialect: Dialect) -> str:
    """The triggers that judge a change of a job; their functions, on PostgreSQL, stay."""
    if dialect == "postgres":
        judge = _trigger(job_guards(dialect), "job_guard", "job_guard();\n")
        frozen = _trigger(job_guards(dialect), "job_frozen", "job_refuse();\n")
        drop = "DROP TRIGGER {} ON detent.job;\n"
    else:
        judge = _trigger(result_guards(dialect), "detent_job_guard", "\nEND;\n")
        frozen = _trigger(job_guards(dialect), "detent_job_frozen", "\nEND;\n")
        drop = "DROP TRIGGER detent_{};\n"
    if dialect == "postgres" and set(held_goes_to()) == set(JOB.states):
        judge = judge.replace(
            " AND ({})".format(" OR ".join(f"NEW.state = '{state}'" for state in held_goes_to())), "", 1
        )
    return "\n".join(
        (_HEADER.format(before=_BEFORE[dialect]) + drop.format("job_guard") + judge, drop.format("job_frozen") + frozen)
    )


def _trigger(text: str, name: str, end: str) -> str:
    start = text.index(f"CREATE TRIGGER {name}")
    return text[start : text.index(end, start) + len(end)].replace("BEFORE UPDATE", "AFTER UPDATE", 1)


if __name__ == "__main__":
    write_out("late_guards", late_guards)
