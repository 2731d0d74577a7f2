"""The viewer's verbs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from detent.errors import UnknownState
from detent.lifecycle.library import JOB
from detent.model.figure_records import BatchCount, TransitionCount
from detent.model.records import (
    Count,
    EventRow,
    ExecutionRow,
    JobDetails,
    JobPage,
    JobPlace,
    JobRow,
    RecordPage,
    RecordPlace,
    TransitionRow,
)
from detent.store.contract import JobSearch
from detent.store.postgres.statements.base import Row, Statement, moment, named, numbers, texts, utc
from detent.store.searching import bounds_of, page_of, record_bounds, record_page
from detent.store.words import RecordSearch

__all__ = [
    "batch_figures",
    "counts",
    "counts_as_of",
    "figures",
    "job_details",
    "job_events",
    "job_executions",
    "job_get",
    "job_list",
    "now",
    "record_search",
    "state_as_of",
    "transitions",
]

_JOB = ", ".join(JobRow.__struct_fields__)
_GET = f"SELECT {_JOB} FROM detent.job_get_v1(%s::bigint[])"
_LIST = f"""
SELECT fits, {", ".join(f"(job).{name}" for name in JobRow.__struct_fields__)}
  FROM detent.job_list_v2(%s::text, %s::text, %s::text, %s::text, %s::text, %s::text, %s::bigint, %s::text, %s::text,
                          %s::text[], %s::text[], %s::timestamptz, %s::timestamptz, %s::bigint, %s::integer,
                          %s::integer)
"""
_DETAILS = "SELECT job_id, key, worker, progress FROM detent.job_details_v1(%s::bigint[]) ORDER BY job_id"
_EXECUTIONS = f"SELECT {', '.join(ExecutionRow.__struct_fields__)} FROM detent.job_executions_v1(%s::bigint)"
_EVENTS = (
    f"SELECT {', '.join(EventRow.__struct_fields__)} FROM detent.job_events_v1(%s::bigint, %s::integer, %s::integer)"
)
_TRANSITIONS = f"SELECT {', '.join(TransitionRow.__struct_fields__)} FROM detent.transitions_v1(%s::text, %s::text)"
_LOGGED = ("entity", "entity_id", "from_state", "to_state", "trigger", "at", "actor", "reason", "metadata")
_SEARCH = f"""
SELECT fits, {", ".join(f"(line).{name}" for name in _LOGGED)}, (line).correlation_id, (line).forced, (line).attempt, 0,
       (line).n
  FROM detent.record_search_v1(%s::text, %s::text, %s::text, %s::timestamptz, %s::timestamptz, %s::bigint, %s::integer,
                               %s::integer)
"""
_STATE_AS_OF = "SELECT detent.state_as_of_v1(%s::text, %s::text, %s::timestamptz)"
_COUNTS = "SELECT tenant, queue, state, jobs FROM detent.counts_v1()"
_FIGURES = f"SELECT {', '.join(TransitionCount.__struct_fields__)} FROM detent.figures_v1(%s::timestamptz, %s::text)"
_BATCH_FIGURES = f"SELECT {', '.join(BatchCount.__struct_fields__)} FROM detent.batch_figures_v1(%s::timestamptz)"
_COUNTS_AS_OF = "SELECT tenant, queue, state, jobs FROM detent.counts_as_of_v1(%s::timestamptz)"


def job_get(ids: Sequence[int], database: str) -> Statement[list[JobRow | None]]:
    """In the order asked; None for what is not there."""

    def decode(rows: Sequence[Row]) -> list[JobRow | None]:
        found = {row[0]: _job(row, database) for row in rows}
        return [found.get(job_id) for job_id in ids]

    return Statement(_GET, (numbers(ids),), decode, writes=False)


def job_list(chosen: JobSearch, after: JobPlace | None, limit: int, looks: int) -> Statement[JobPage]:
    """The last row says where it stopped looking, if it did."""
    since, place = bounds_of(chosen, after)
    wanted = chosen.metadata or None
    params = (
        *(chosen.state, chosen.task, chosen.queue, chosen.tenant, chosen.key, chosen.correlation_id, chosen.run_id),
        *(chosen.worker, chosen.error),
        *(wanted and texts(name for name, _ in wanted), wanted and texts(values for _, values in wanted)),
        *(moment(since, field="since"), moment(place.created_at, field="until"), place.id, limit, looks),
    )

    def decode(rows: Sequence[Row]) -> JobPage:
        found = [JobRow(**named(JobRow.__struct_fields__, row[1:])) for row in rows]
        stopped = found.pop() if rows and not rows[-1][0] else None
        return page_of(found, limit, None if stopped is None else JobPlace(stopped.created_at, stopped.id))

    return Statement(_LIST, params, decode, writes=False)


def job_details(ids: Sequence[int]) -> Statement[list[JobDetails]]:
    """By id."""
    return Statement(_DETAILS, (numbers(ids),), lambda rows: [JobDetails(*row) for row in rows], writes=False)


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


def record_search(chosen: RecordSearch, after: RecordPlace | None, limit: int, looks: int) -> Statement[RecordPage]:
    """The last row says where it stopped looking, if it did."""
    since, place = record_bounds(chosen, after)
    params = (
        *(chosen.actor, chosen.entity, chosen.entity_id, moment(since, field="since")),
        *(moment(place.at, field="until"), place.n, limit, looks),
    )

    def decode(rows: Sequence[Row]) -> RecordPage:
        found = [TransitionRow(**named(TransitionRow.__struct_fields__, row[1:])) for row in rows]
        stopped = found.pop() if rows and not rows[-1][0] else None
        return record_page(found, limit, None if stopped is None else RecordPlace(stopped.at, stopped.n))

    return Statement(_SEARCH, params, decode, writes=False)


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


def figures(since: datetime, task: str | None) -> Statement[list[TransitionCount]]:
    """From the hours, and what is not added to them yet."""
    params = (moment(since, field="since"), task)
    return Statement(_FIGURES, params, lambda rows: [TransitionCount(*row) for row in rows], writes=False)


def batch_figures(since: datetime) -> Statement[list[BatchCount]]:
    """From the runs that ended since."""
    params = (moment(since, field="since"),)
    return Statement(_BATCH_FIGURES, params, lambda rows: [BatchCount(*row) for row in rows], writes=False)


def _counts(rows: Sequence[Row]) -> list[Count]:
    return [Count(*row) for row in rows]


def now() -> Statement[datetime]:
    """The time that decides."""
    return Statement("SELECT detent.now_v1()", (), lambda rows: utc(rows[0][0]), writes=False)
