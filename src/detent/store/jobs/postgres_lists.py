"""Lists and counts of jobs on PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from detent.errors import UnknownState
from detent.lifecycle.library import JOB
from detent.model.figure_records import BatchCount, RateCount, TransitionCount
from detent.model.records import Count, EventRow, ExecutionRow, JobDetails, JobPage, JobPlace, JobRow
from detent.model.service_records import DeadGroup, OldestReady, QueueDepth, QueueRow
from detent.store.jobs.filters import LOOKS_MAX, JobFilter, JobSearch, bounds_of, page_of
from detent.store.postgres.statement import Row, Statement, moment, named, numbers, texts, utc
from detent.store.postgres.verb_base import VerbBase, runs, runs_each

__all__ = ["PostgresLists", "job_get", "job_list"]

_JOB = ", ".join(JobRow.__struct_fields__)
_GET = f"SELECT {_JOB} FROM detent.job_get_v1(%s::bigint[])"
_LIST = f"""
SELECT fits, {", ".join(f"(job).{name}" for name in JobRow.__struct_fields__)}
  FROM detent.job_list_v2(%s::text, %s::text, %s::text, %s::text, %s::text, %s::text, %s::bigint, %s::text, %s::text,
                          %s::text[], %s::text[], %s::timestamptz, %s::timestamptz, %s::bigint, %s::integer,
                          %s::integer)
"""
_DETAILS = "SELECT job_id, key, worker, progress, status FROM detent.job_details_v1(%s::bigint[]) ORDER BY job_id"
_EXECUTIONS = f"SELECT {', '.join(ExecutionRow.__struct_fields__)} FROM detent.job_executions_v1(%s::bigint)"
_EVENTS = (
    f"SELECT {', '.join(EventRow.__struct_fields__)} FROM detent.job_events_v1(%s::bigint, %s::integer, %s::integer)"
)
_COUNTS = "SELECT tenant, queue, state, jobs FROM detent.counts_v1(%s::text)"
_COUNTS_AS_OF = "SELECT tenant, queue, state, jobs FROM detent.counts_as_of_v1(%s::timestamptz)"
_FIGURES = f"""
SELECT {", ".join(TransitionCount.__struct_fields__)}
  FROM detent.figures_v1(%s::timestamptz, %s::text, %s::timestamptz)
"""
_RATES = f"SELECT {', '.join(RateCount.__struct_fields__)} FROM detent.rates_v1(%s::timestamptz, %s::integer)"
_BATCH_FIGURES = f"SELECT {', '.join(BatchCount.__struct_fields__)} FROM detent.batch_figures_v1(%s::timestamptz)"
_COUNT = "SELECT detent.job_count_v1(%s::text, %s::text, %s::text, %s::text)"
_FOLD = "SELECT detent.counts_fold_v1(%s::integer)"
_DEAD = DeadGroup.__struct_fields__
_REPORT = f"""
SELECT {", ".join(_DEAD)} FROM detent.dead_report_v1(%s::text, %s::text, %s::text, %s::integer)
"""


def job_get(ids: Sequence[int], database: str) -> Statement[list[JobRow | None]]:
    """`database` is named in the error about a state that is not known."""

    def decode(rows: Sequence[Row]) -> list[JobRow | None]:
        found = {row[0]: _job(row, database) for row in rows}
        return [found.get(job_id) for job_id in ids]

    return Statement(_GET, (numbers(ids),), decode, writes=False)


def _job(row: Row, database: str) -> JobRow:
    job = JobRow(**named(JobRow.__struct_fields__, row))
    if job.state not in JOB.states:
        raise UnknownState(database, "nothing was changed", "job", str(job.id), job.state, tuple(JOB.states))
    return job


def job_list(
    chosen: JobSearch, after: JobPlace | None = None, limit: int = 100, looks: int = LOOKS_MAX
) -> Statement[JobPage]:
    """The last row does not fit if the search stopped there before its end."""
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
    return Statement(_DETAILS, (numbers(ids),), lambda rows: [JobDetails(*row) for row in rows], writes=False)


def job_executions(job_id: int) -> Statement[list[ExecutionRow]]:
    fields = ExecutionRow.__struct_fields__
    return Statement(
        _EXECUTIONS, (job_id,), lambda rows: [ExecutionRow(**named(fields, row)) for row in rows], writes=False
    )


def job_events(job_id: int, after_seq: int = 0, limit: int = 1000) -> Statement[list[EventRow]]:
    fields = EventRow.__struct_fields__
    params = (job_id, after_seq, limit)
    return Statement(_EVENTS, params, lambda rows: [EventRow(**named(fields, row)) for row in rows], writes=False)


def job_count(chosen: JobFilter) -> Statement[int]:
    params = (chosen.state, chosen.task, chosen.queue, chosen.tenant)
    return Statement(_COUNT, params, lambda rows: int(rows[0][0]), writes=False)


def counts(tenant: str | None = None) -> Statement[list[Count]]:
    return Statement(_COUNTS, (tenant,), _counts, writes=False)


def counts_as_of(at: datetime) -> Statement[list[Count]]:
    return Statement(_COUNTS_AS_OF, (moment(at, field="at"),), _counts, writes=False)


def _counts(rows: Sequence[Row]) -> list[Count]:
    return [Count(*row) for row in rows]


def figures(
    since: datetime, task: str | None = None, until: datetime | None = None
) -> Statement[list[TransitionCount]]:
    params = (moment(since, field="since"), task, None if until is None else moment(until, field="until"))
    return Statement(_FIGURES, params, lambda rows: [TransitionCount(*row) for row in rows], writes=False)


def rates(since: datetime, seconds: int) -> Statement[list[RateCount]]:
    params = (moment(since, field="since"), seconds)
    return Statement(_RATES, params, lambda rows: [RateCount(utc(row[0]), *row[1:]) for row in rows], writes=False)


def batch_figures(since: datetime) -> Statement[list[BatchCount]]:
    params = (moment(since, field="since"),)
    return Statement(_BATCH_FIGURES, params, lambda rows: [BatchCount(*row) for row in rows], writes=False)


def counts_fold(limit: int) -> Statement[int]:
    return Statement(_FOLD, (limit,), lambda rows: rows[0][0])


def dead_report(task: str | None, queue: str | None, tenant: str | None, limit: int) -> Statement[list[DeadGroup]]:
    params = (task, queue, tenant, limit)
    return Statement(_REPORT, params, lambda rows: [DeadGroup(**named(_DEAD, row)) for row in rows], writes=False)


def queue_list() -> Statement[list[QueueRow]]:
    fields = QueueRow.__struct_fields__
    sql = f"SELECT {', '.join(fields)} FROM detent.queue_list_v1()"
    return Statement(sql, (), lambda rows: [QueueRow(**named(fields, row)) for row in rows], writes=False)


def queue_depths() -> Statement[list[QueueDepth]]:
    sql = "SELECT queue, state, jobs FROM detent.queue_depths_v1()"
    return Statement(sql, (), lambda rows: [QueueDepth(*row) for row in rows], writes=False)


def ready_oldest() -> Statement[list[OldestReady]]:
    fields = OldestReady.__struct_fields__
    sql = f"SELECT {', '.join(fields)} FROM detent.ready_oldest_v1()"
    return Statement(sql, (), lambda rows: [OldestReady(**named(fields, row)) for row in rows], writes=False)


def now() -> Statement[datetime]:
    return Statement("SELECT detent.now_v1()", (), lambda rows: utc(rows[0][0]), writes=False)


class PostgresLists(VerbBase):
    """Lists, counts and figures."""

    job_list = runs(job_list)
    job_details = runs_each(job_details)
    job_executions = runs(job_executions)
    job_events = runs(job_events)
    job_count = runs(job_count)
    counts = runs(counts)
    counts_as_of = runs(counts_as_of)
    counts_fold = runs(counts_fold)
    figures = runs(figures)
    rates = runs(rates)
    batch_figures = runs(batch_figures)
    dead_report = runs(dead_report)
    queue_list = runs(queue_list)
    queue_depths = runs(queue_depths)
    ready_oldest = runs(ready_oldest)
    now = runs(now)

    def job_get(self, ids: Sequence[int]) -> list[JobRow | None]:
        """Ask for the jobs, unless there are none to ask for."""
        return self._session.run(job_get(ids, self._name)) if ids else []
