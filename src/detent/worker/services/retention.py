"""Deletes jobs that ended long ago, with all their records (J16), and results whose time to live is over (J13)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from detent.lifecycle.library import JOB
from detent.model.records import BadRow, JobPlace
from detent.model.service_records import Agenda
from detent.store.contract import Store
from detent.store.row_errors import cause_of, is_of_one_row
from detent.worker.services.damage_isolation import DamageIsolation
from detent.worker.services.service import Service

if TYPE_CHECKING:
    from detent.archive.writer import Archive  # not loaded into every worker

__all__ = ["Keep", "Retention"]

log = logging.getLogger("detent.worker")

_PORTION = 1000
_PORTIONS_MAX = 5
_FIRST = JobPlace(datetime.min.replace(tzinfo=UTC), 0)
"""The place before all jobs."""


@dataclass(frozen=True, slots=True)
class Keep:
    """For how many days ended jobs are kept; 0 means for ever."""

    succeeded: float
    others: float
    staged: float = 1.0
    """Days for staged data of pipeline runs that have ended; 0 means that none is kept."""
    log: float = 0.0
    """Days for records that belong to no job; 0 means for ever."""
    keys_as_jobs: bool = False
    """Whether a key without a time to live is deleted after its job; otherwise it stays for ever."""


C = TypeVar("C")


@dataclass(slots=True)
class _Walk(Generic[C]):
    """A pass over rows: `step` handles those after a place, and returns where to continue; None at the end."""

    step: Callable[[C], C | None]
    after: C


@dataclass(slots=True)
class _JobWalk(_Walk[JobPlace]):
    """A pass over jobs in the order of their creation."""

    after: JobPlace = _FIRST


class Retention:
    """Passes over old jobs every hour, a few small portions a second, so that the queue is not disturbed.

    Jobs that were created after the horizon are not read.

    The horizon moves by whole hours (`every`, in seconds), because each horizon is recorded for ever.
    """

    def __init__(
        self,
        store: Store,
        keep: Keep,
        portion: int | None = None,
        archive: Archive | None = None,
        every: int = 3600,
    ) -> None:
        self._store = store
        self._every = every
        self._portion = self._portion_max = portion or (_PORTION if archive is None else archive.portion_max)
        self._isolation = DamageIsolation("retention", store)
        self._archive = archive
        others = tuple(sorted(JOB.rests - {"succeeded"}))
        self._keep = keep
        self._kept = [(("succeeded",), keep.succeeded), (others, keep.others)]
        self._walks: list[_Walk[Any]] = []
        self._hour: datetime | None = None

    def service(self) -> Service:
        """Return the service: once a second, by one worker."""
        return Service("retention", 1.0, self.run, alone=True, at=self._next)

    @property
    def is_walking(self) -> bool:
        """Whether the pass of this hour has not ended."""
        return bool(self._walks)

    def _next(self, agenda: Agenda) -> datetime | None:
        return agenda.now if self._walks or self._begin_of_pass(agenda.now) != self._hour else None

    def _skip_damage(self, walk: _Walk[Any], error: Exception, now: float) -> Any:
        """Return where a pass continues after a portion that a damaged row made fail. The portion is halved until it
        holds only that job; then the job is skipped. A pass over runs ends, and is tried again in an hour."""
        if not isinstance(walk, _JobWalk):
            self._isolation.report([BadRow("walk", "runs", cause_of(error), -1)], now)
            return None
        if self._portion > 1:
            self._portion //= 2
            return walk.after
        bad = self._store.job_prunable(self._store.now(), walk.after, 1, ()).next
        if bad is not None:
            self._isolation.report([BadRow("job", str(bad.id), cause_of(error), bad.id)], now)
        return bad

    def run(self, now: float) -> None:
        """Handle the next portions, or begin a new pass if an hour has passed. Jobs that cannot be archived stay, and
        are tried again in an hour."""
        hour = self._begin_of_pass(self._store.now())
        if hour != self._hour:
            self._hour = hour
            # The newer horizon last: an older one that is not beyond the recorded horizon needs no record.
            horizons = [(hour - timedelta(days=days), states) for states, days in self._kept if days]
            # The limits first: `verify` expects the slots of ended attempts to be freed every hour.
            self._walks = [_Walk(lambda after: self._store.limit_prune(after, self._portion_max).next, "")]
            if self._keep.others:
                # Before the jobs of these runs, which stay as long as their run.
                before = hour - timedelta(days=self._keep.others)
                self._walks.append(_Walk(partial(self._prune_batches, before), 0))
            self._walks += [_JobWalk(partial(self._prune, *one)) for one in sorted(horizons)]
            if any(task.result_ttl is not None for task in self._store.task_times_list()):
                self._walks.append(_JobWalk(self._drop_results))
            self._walks.append(_Walk(partial(self._prune_runs, hour), 0))
            self._walks += self._other_passes(hour)
        for _ in range(_PORTIONS_MAX):
            if not self._walks:
                return
            walk = self._walks[0]
            try:
                then = walk.step(walk.after)
            except OSError as error:
                log.error("Old jobs cannot be archived, and stay for another hour: %s", error)
                then = None
            except Exception as error:
                if not is_of_one_row(error):
                    raise
                then = self._skip_damage(walk, error, now)
            else:
                self._portion = min(self._portion_max, self._portion * 2)
            if then is None:
                self._walks.pop(0)
            else:
                walk.after = then

    def _other_passes(self, hour: datetime) -> list[_Walk[Any]]:
        """Return the passes over what belongs to no job. Each portion has a bounded number of rows."""
        store, portion = self._store, self._portion_max
        walks: list[_Walk[Any]] = [_Walk(lambda after: after if store.key_expire(portion) == portion else None, 0)]
        if self._keep.keys_as_jobs:
            walks.append(_Walk(lambda after: store.key_forget(after, portion).next, ("", "")))
        if self._keep.log:
            before = hour - timedelta(days=self._keep.log)
            walks.append(_Walk(lambda after: store.log_prune(before, after, portion, "retention").next, 0))
        return walks

    def _prune(self, before: datetime, states: Sequence[str], after: JobPlace) -> JobPlace | None:
        if (archive := self._archive) is None:
            return self._store.job_prune(before, after, self._portion, "retention", states).next
        limit, drop = self._portion, ("retention", None)
        return self._store.together(lambda verbs: archive.portion(verbs, before, after, limit, states, drop=drop)).next

    def _prune_runs(self, hour: datetime, after_id: int) -> int | None:
        """Delete pipeline runs that ended long ago; their staged data is deleted sooner."""
        staged_before = hour - timedelta(days=self._keep.staged)
        before = hour - timedelta(days=self._keep.others) if self._keep.others else datetime.min.replace(tzinfo=UTC)
        return after_id if self._store.pipeline_prune(staged_before, before, self._portion).more else None

    def _prune_batches(self, before: datetime, after_id: int) -> int | None:
        """Delete batch runs that have ended, one at a time, each with all its targets."""
        return self._store.batch_prune(before, after_id, 1, "retention").next_id

    def _drop_results(self, after: JobPlace) -> JobPlace | None:
        return self._store.result_drop(after, self._portion).next

    def _begin_of_pass(self, moment: datetime) -> datetime:
        seconds = int(moment.timestamp())
        return datetime.fromtimestamp(seconds - seconds % self._every, UTC)
