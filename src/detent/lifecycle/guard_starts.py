"""The guard of jobs that lets an ending correct the start of its attempt.

`start_guards` gives the text of the migration `attempt_times` for each database: the judge of `guard_late`, in which an
attempt that ends may have begun earlier than the record says so far, but not before its claim. An event or a renewal
puts a start on record when it arrives; only the ending knows when the function was called.
`python -m detent.lifecycle.guard_starts` writes it; a test keeps it equal.
"""

from __future__ import annotations

from detent.lifecycle.guard import Dialect, write_out
from detent.lifecycle.guard_late import late_guards

__all__ = ["start_guards"]

_HEADER = """\
-- Attempts begin when their function is called: by `python -m detent.lifecycle.guard_starts`.
-- A test keeps this file equal to the lifecycle: change the lifecycle, not this file.
--
-- An ending says when the function was called{verbs}. It may correct a start that an event or a
-- renewal had put on record too late.

"""
_VERBS = {"postgres": " (job_finish_v2, job_abort_v2, lease_renew_v2)", "sqlite": ""}
_ONCE = "(OLD.started_at IS NULL OR NEW.started_at = OLD.started_at)"
_CORRECTED = (
    "(OLD.started_at IS NULL OR NEW.started_at = OLD.started_at"
    " OR (NEW.state <> 'running' AND NEW.started_at BETWEEN OLD.leased_at AND OLD.started_at))"
)
_VIEW = """
-- When attempts were claimed, began, committed and ended, with their job's task, queue and tenant.
CREATE VIEW {schema}attempt_times AS
  SELECT e.job_id, e.attempt, j.task, j.queue, j.tenant, e.outcome, e.worker, e.leased_at, e.started_at, e.committed_at,
         coalesce(e.done_at, e.aborted_at) AS ended_at,
         {held} AS held_seconds,
         {ran} AS run_seconds
    FROM {schema}execution e JOIN {schema}job j ON j.id = e.job_id;
"""
_FILL = {
    "postgres": {
        "schema": "detent.",
        "held": "extract(epoch FROM e.started_at - e.leased_at)::double precision",
        "ran": "extract(epoch FROM coalesce(e.done_at, e.aborted_at) - e.started_at)::double precision",
    },
    "sqlite": {
        "schema": "detent_",
        "held": "(e.started_at - e.leased_at) / 1000000.0",
        "ran": "(coalesce(e.done_at, e.aborted_at) - e.started_at) / 1000000.0",
    },
}


def start_guards(dialect: Dialect) -> str:
    """The judge of jobs in its new words, and the view of the times."""
    text = late_guards(dialect)
    judge = text[text.index("DROP TRIGGER") : text.index("\nDROP TRIGGER", text.index("CREATE TRIGGER"))]
    assert judge.count(_ONCE) == 1
    return _HEADER.format(verbs=_VERBS[dialect]) + judge.replace(_ONCE, _CORRECTED) + _VIEW.format(**_FILL[dialect])


if __name__ == "__main__":
    write_out("attempt_times", start_guards)
