"""The viewer's verbs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from detent.errors import UnknownState
from detent.lifecycle.library import JOB
from detent.model.records import Count, EventRow, ExecutionRow, JobRow, TransitionRow
from detent.store.contract import JobFilter
from detent.store.postgres.statements.base import Row, Statement, moment, named, numbers, utc

__all__ = [
    "counts",
    "counts_as_of",
    "job_events",
    "job_executions",
    "job_get",
    "job_list",
    "now",
    "state_as_of",
    "transitions",
]

_JOB = ", ".join(JobRow.__struct_fields__)
_GET = f"SELECT {_JOB} FROM detent.job_get_v1(%s::bigint[])"
_LIST = f"SELECT {_JOB} FROM detent.job_list_v1(%s::text, %s::text, %s::text, %s::text, %s::bigint, %s::integer)"
_EXECUTIONS = f"SELECT {', '.join(ExecutionRow.__struct_fields__)} FROM detent.job_executions_v1(%s::bigint)"
_EVENTS = (
    f"SELECT {', '.join(EventRow.__struct_fields__)} FROM detent.job_events_v1(%s::bigint, %s::integer, %s::integer)"
)
_TRANSITIONS = f"SELECT {', '.join(TransitionRow.__struct_fields__)} FROM detent.transitions_v1(%s::text, %s::text)"
_STATE_AS_OF = "SELECT detent.state_as_of_v1(%s::text, %s::text, %s::timestamptz)"
_COUNTS = "SELECT tenant, queue, state, jobs FROM detent.counts_v1()"
_COUNTS_AS_OF = "SELECT tenant, queue, state, jobs FROM detent.counts_as_of_v1(%s::timestamptz)"


def job_get(ids: Sequence[int], database: str) -> Statement[list[JobRow | None]]:
    """In the order asked; None for what is not there."""

    def decode(rows: Sequence[Row]) -> list[JobRow | None]:
        found = {row[0]: _job(row, database) for row in rows}
        return [found.get(job_id) for job_id in ids]

    return Statement(_GET, (numbers(ids),), decode, writes=False)


def job_list(chosen: JobFilter, after_id: int, limit: int) -> Statement[list[JobRow]]:
    """A walk along the ids."""
    params = (chosen.state, chosen.task, chosen.queue, chosen.tenant, after_id, limit)
    fields = JobRow.__struct_fields__
    return Statement(_LIST, params, lambda rows: [JobRow(**named(fields, row)) for row in rows], writes=False)


def _job(row: Row, database: str) -> JobRow:
    job = JobRow(**named(JobRow.__struct_fields__, row))
    if job.state not in JOB.states:
        raise UnknownState(database, "nothing was changed", "job", str(job.id), job.state, tuple(JOB.states))
    return job


def job_executions(job_id: int) -> Statement[list[ExecutionRow]]:
    """Ended and in flight."""
    fields = ExecutionRow.__struct_fields__
    return Statement(
        _EXECUTIONS, (job_id,), lambda rows: [ExecutionRow(**named(fields, row)) for row in rows], writes=False
    )


def job_events(job_id: int, after_seq: int, limit: int) -> Statement[list[EventRow]]:
    """In the order of their numbers."""
    fields = EventRow.__struct_fields__
    params = (job_id, after_seq, limit)
    return Statement(_EVENTS, params, lambda rows: [EventRow(**named(fields, row)) for row in rows], writes=False)


def transitions(entity: str, entity_id: str) -> Statement[list[TransitionRow]]:
    """Every change of one entity."""
    fields = TransitionRow.__struct_fields__
    return Statement(
        _TRANSITIONS,
        (entity, entity_id),
        lambda rows: [TransitionRow(**named(fields, row)) for row in rows],
        writes=False,
    )


def state_as_of(entity: str, entity_id: str, at: datetime) -> Statement[str | None]:
    """Folded by the database."""
    params = (entity, entity_id, moment(at, field="at"))
    return Statement(_STATE_AS_OF, params, lambda rows: rows[0][0], writes=False)


def counts() -> Statement[list[Count]]:
    """From the jobs themselves."""
    return Statement(_COUNTS, (), _counts, writes=False)


def counts_as_of(at: datetime) -> Statement[list[Count]]:
    """From the last line of each job."""
    return Statement(_COUNTS_AS_OF, (moment(at, field="at"),), _counts, writes=False)


def _counts(rows: Sequence[Row]) -> list[Count]:
    return [Count(*row) for row in rows]


def now() -> Statement[datetime]:
    """The time that decides."""
    return Statement("SELECT detent.now_v1()", (), lambda rows: utc(rows[0][0]), writes=False)
