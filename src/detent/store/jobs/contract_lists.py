"""The verbs that read and count jobs. They change nothing and lock nothing, except `counts_fold`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from detent.model.figure_records import BatchCount, RateCount, TransitionCount
from detent.model.records import Count, EventRow, ExecutionRow, JobDetails, JobPage, JobPlace, JobRow
from detent.model.service_records import DeadGroup, OldestReady, QueueDepth, QueueRow
from detent.store.jobs.filters import LOOKS_MAX, JobFilter, JobSearch
from detent.store.verb import verb

__all__ = ["JobListVerbs"]


class JobListVerbs(Protocol):
    """Lists, counts and figures."""

    @verb("viewer")
    def job_get(self, ids: Sequence[int]) -> list[JobRow | None]:
        """Return jobs in the order of `ids`, None for those that do not exist."""
        ...

    @verb("viewer")
    def job_list(
        self, chosen: JobSearch, after: JobPlace | None = None, limit: int = 100, looks: int = LOOKS_MAX
    ) -> JobPage:
        """Return a page of jobs that fit, after a place: newest first by creation, then by id. Each has its state as
        found, known or not.

        The search reads about `looks` jobs at most. Then the page may be short, or empty, and names the place to
        continue after. An index finds a key, a run, a correlation id, a time, and the jobs of a state if they are few.
        Everything else is compared row by row.
        """
        ...

    @verb("viewer")
    def job_details(self, ids: Sequence[int]) -> list[JobDetails]:
        """Return what lists show of jobs beside their rows, by id, for those that exist."""
        ...

    @verb("viewer")
    def job_executions(self, job_id: int) -> list[ExecutionRow]:
        """Return every attempt of a job, ended or in flight, in order."""
        ...

    @verb("viewer")
    def job_events(self, job_id: int, after_seq: int = 0, limit: int = 1000) -> list[EventRow]:
        """Return the events of a job after a sequence number, in order."""
        ...

    @verb("viewer")
    def job_count(self, chosen: JobFilter) -> int:
        """Return how many jobs fit. Exact, without reading the jobs at rest."""
        ...

    @verb("viewer")
    def counts(self, tenant: str | None = None) -> list[Count]:
        """Count the jobs of a tenant, or of all, by tenant, queue and state, now. Exact, without reading the jobs at
        rest."""
        ...

    @verb("viewer")
    def counts_as_of(self, at: datetime) -> list[Count]:
        """Count jobs by tenant, queue and state at a past time within retention, from the record."""
        ...

    @verb("worker")
    def counts_fold(self, limit: int) -> int:
        """Add up to `limit` moves and as many batches of succeeded jobs to the counts of jobs at rest; return how many
        there were. No answer changes by it: `counts` and `job_count` add up everything. Successes of announced tasks
        (`announced_put`) are put on the list of `failure_report_take`."""
        ...

    @verb("viewer")
    def figures(self, since: datetime, task: str | None = None, until: datetime | None = None) -> list[TransitionCount]:
        """Add up the moves of jobs since the start of that hour (and before the hour of `until`), by task, states,
        outcome and bucket. Exact, without reading jobs: moves are added up by hour, and hours are kept for 31 days."""
        ...

    @verb("viewer")
    def rates(self, since: datetime, seconds: int) -> list[RateCount]:
        """Add up the moves of jobs since a time by steps of `seconds` (60 or 3600), state, outcome and bucket, in that
        order. Minutes are kept for six hours, then they are joined to hours; hours are kept for 31 days. Bounded: if
        more than 5,000 moves or 50 batches of succeeded jobs are not folded yet, the rest is left out."""
        ...

    @verb("viewer")
    def batch_figures(self, since: datetime) -> list[BatchCount]:
        """Count requests to apply and batch runs that ended since the start of that hour, by batch and bucket."""
        ...

    @verb("viewer")
    def dead_report(self, task: str | None, queue: str | None, tenant: str | None, limit: int) -> list[DeadGroup]:
        """Group dead letters (of that task, queue, tenant; None is any) by task, queue, reason and kind of error.
        Return the `limit` largest groups, largest first. Of more than 10,000 dead letters that fit, the newest 10,000
        are grouped."""
        ...

    @verb("viewer")
    def queue_list(self) -> list[QueueRow]:
        """Return every queue that was ever paused, by name, with or without jobs."""
        ...

    @verb("viewer")
    def queue_depths(self) -> list[QueueDepth]:
        """Count jobs by queue and state, now. Exact, without reading the jobs at rest."""
        ...

    @verb("viewer")
    def ready_oldest(self) -> list[OldestReady]:
        """Return the ready job that has been due longest, for each queue and task that has a ready job, by queue and
        task. Paused queues count. It reads one row for each of 10,000 lanes at most."""
        ...

    @verb("viewer")
    def now(self) -> datetime:
        """Return the time of the database's clock."""
        ...
