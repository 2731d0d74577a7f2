"""The contract's verbs that look: jobs, their attempts and events, the record, and the past folded out of it.

The words are those of `contract`, which has these verbs too. They change nothing and lock nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

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
from detent.store.words import LOOKS_MAX, JobSearch, RecordSearch, Verb

__all__ = ["LOOKING", "LookingVerbs"]


class LookingVerbs(Protocol):
    """Looking."""

    def job_get(self, ids: Sequence[int]) -> list[JobRow | None]: ...

    def job_list(
        self, chosen: JobSearch, after: JobPlace | None = None, limit: int = 100, looks: int = LOOKS_MAX
    ) -> JobPage:
        """A page of jobs that fit, the newest first by creation (then by id), after a place; each with its state as
        found, known or not.

        It looks at no more than `looks` jobs, give or take a portion: then the page may be short, or empty, and names
        the place to go on after. A key, a run, a correlation id and a time are found by an index. So are the jobs of a
        state, if they are few. Everything else is compared while looking.
        """
        ...

    def job_details(self, ids: Sequence[int]) -> list[JobDetails]:
        """What lists show of jobs beside their rows, for those that are there, by id."""
        ...

    def job_executions(self, job_id: int) -> list[ExecutionRow]:
        """Every attempt of a job, ended or in flight, in order."""
        ...

    def job_events(self, job_id: int, after_seq: int = 0, limit: int = 1000) -> list[EventRow]: ...

    def transitions(self, entity: str, entity_id: str) -> list[TransitionRow]:
        """Every change of one entity in order. An execution is an entity of its own: `execution`, `<job>/<attempt>`."""
        ...

    def record_search(
        self, chosen: RecordSearch, after: RecordPlace | None = None, limit: int = 100, looks: int = LOOKS_MAX
    ) -> RecordPage:
        """A page of the explicit changes that fit, of anything, the newest first, after a place. The ordinary steps of
        attempts (claim, start, commit, finish) are not among them: `transitions` has those of one job.

        An actor, an entity with its id, and times are found by an index. It looks at no more than `looks` lines, give
        or take a portion: then the page may be short, or empty, and names the place to go on after.
        """
        ...

    def state_as_of(self, entity: str, entity_id: str, at: datetime) -> str | None:
        """The state at a past moment: folded from the record; None before its beginning."""
        ...

    def counts(self) -> list[Count]:
        """Jobs by tenant, queue and state, now. Exact, and no walk through the jobs at rest."""
        ...

    def counts_as_of(self, at: datetime) -> list[Count]:
        """Jobs by tenant, queue and state at a past moment within retention, folded from the record."""
        ...

    def figures(self, since: datetime, task: str | None = None) -> list[TransitionCount]:
        """Moves of jobs since the beginning of that hour, added up by task, states, outcome and bucket. Exact, and no
        walk through jobs: moves are added up by hour, and hours are kept for 31 days."""
        ...

    def batch_figures(self, since: datetime) -> list[BatchCount]:
        """Requests to apply, and batch runs that ended, since the beginning of that hour, by batch and bucket."""
        ...

    def now(self) -> datetime:
        """The database's clock."""
        ...


LOOKING = (
    Verb("job_get", "viewer"),
    Verb("job_list", "viewer"),
    Verb("job_details", "viewer"),
    Verb("job_executions", "viewer"),
    Verb("job_events", "viewer"),
    Verb("transitions", "viewer"),
    Verb("record_search", "viewer"),
    Verb("state_as_of", "viewer"),
    Verb("counts", "viewer"),
    Verb("counts_as_of", "viewer"),
    Verb("figures", "viewer"),
    Verb("batch_figures", "viewer"),
    Verb("now", "viewer"),
)
