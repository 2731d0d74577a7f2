"""Jobs that finished long ago go, with all their records (J16); results go when their time is over (J13)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Generic, TypeVar

from detent.lifecycle.library import JOB
from detent.model.records import BadRow
from detent.model.service_records import Agenda
from detent.store.apart import cause_of, is_of_one_row
from detent.store.contract import Store, Verbs
from detent.worker.services.archive import Archive
from detent.worker.services.damage_isolation import DamageIsolation
from detent.worker.services.service import Service

__all__ = ["Keep", "Retention"]

log = logging.getLogger("detent.worker")

_PORTION = 1000
_ARCHIVED = 100
"""Jobs in a portion that is archived: on SQLite nobody else writes meanwhile."""
_PORTIONS_MAX = 5


@dataclass(frozen=True, slots=True)
class Keep:
    """For how many days jobs at rest are kept; 0 is for ever."""

    succeeded: float
    others: float
    staged: float = 1.0
    """Of what pipeline runs that have ended had staged; 0 is not at all."""
    log: float = 0.0
    """Of lines of the record that belong to no job; 0 is for ever."""
    keys_as_jobs: bool = False
    """Whether a key without a time to live goes after its job; otherwise it stays for ever."""


@dataclass(slots=True)
class _Walk:
    """A walk along all jobs: `step` looks at those after an id, and says where to go on."""

    step: Callable[[int], int | None]
    after_id: int = 0
    by_job: bool = True


C = TypeVar("C")


class _Onward(Generic[C]):
    """A walk along rows that are not in the order of a number: it remembers by itself where it goes on."""

    def __init__(self, first: C, step: Callable[[C], C | None]) -> None:
        self._after = first
        self._step = step

    def __call__(self, after_id: int) -> int | None:
        """Take the next portion; None at the end."""
        then = self._step(self._after)
        if then is None:
            return None
        self._after = then
        return after_id + 1


class Retention:
    """Every hour a walk along all jobs, a few small portions a second, so that the queue is not disturbed.

    The horizon moves by whole hours: each is on record for ever.
    """

    def __init__(self, store: Store, keep: Keep, portion: int | None = None, archive: Archive | None = None) -> None:
        self._store = store
        self._portion = self._portion_max = portion or (_PORTION if archive is None else _ARCHIVED)
        self._isolation = DamageIsolation("retention", store)
        self._archive = archive
        others = tuple(sorted(JOB.rests - {"succeeded"}))
        self._keep = keep
        self._kept = [(("succeeded",), keep.succeeded), (others, keep.others)]
        self._walks: list[_Walk] = []
        self._hour: datetime | None = None

    def service(self) -> Service:
        """Once a second, by one worker."""
        return Service("retention", 1.0, self.run, alone=True, at=self._next)

    @property
    def is_walking(self) -> bool:
        """Whether this hour's walk has not ended."""
        return bool(self._walks)

    def _next(self, agenda: Agenda) -> datetime | None:
        return agenda.now if self._walks or _hour(agenda.now) != self._hour else None

    def _past(self, walk: _Walk, error: Exception, now: float) -> int | None:
        """Return where a walk goes on after a portion that a damaged row made fail. The portion is halved until that
        job is alone in it; then the walk passes over it. A walk along runs ends, and is tried again in an hour."""
        if not walk.by_job:
            self._isolation.tell([BadRow("walk", "runs", cause_of(error), -1)], now)
            return None
        if self._portion > 1:
            self._portion //= 2
            return walk.after_id
        bad_id = self._store.job_prunable(self._store.now(), walk.after_id, 1, ()).next_id
        if bad_id is not None:
            self._isolation.tell([BadRow("job", str(bad_id), cause_of(error), bad_id)], now)
        return bad_id

    def run(self, now: float) -> None:
        """The next portions of the walk, or a new one where an hour has passed. What cannot be archived stays, and is
        tried again in an hour."""
        hour = _hour(self._store.now())
        if hour != self._hour:
            self._hour = hour
            # The newer horizon last: where the older one is not beyond what is on record already, it needs no line.
            horizons = [(hour - timedelta(days=days), states) for states, days in self._kept if days]
            # The limits first: `verify` expects slots of attempts that have ended to go every hour.
            limits = _Onward("", lambda after: self._store.limit_prune(after, self._portion_max).next)
            self._walks = [_Walk(limits, by_job=False)]
            if self._keep.others:
                # Before the jobs that it was made of: those stay for as long as it does.
                before = hour - timedelta(days=self._keep.others)
                self._walks.append(_Walk(partial(self._prune_batches, before), by_job=False))
            self._walks += [_Walk(partial(self._prune, *one)) for one in sorted(horizons)]
            if any(task.result_ttl is not None for task in self._store.times_list()):
                self._walks.append(_Walk(self._drop_results))
            self._walks.append(_Walk(partial(self._prune_runs, hour), by_job=False))
            self._walks += [_Walk(step, by_job=False) for step in self._besides(hour)]
        for _ in range(_PORTIONS_MAX):
            if not self._walks:
                return
            walk = self._walks[0]
            try:
                then = walk.step(walk.after_id)
            except OSError as error:
                log.error("jobs stay for another hour, since they cannot be archived: %s", error)
                then = None
            except Exception as error:
                if not is_of_one_row(error):
                    raise
                then = self._past(walk, error, now)
            else:
                self._portion = min(self._portion_max, self._portion * 2)
            if then is None:
                self._walks.pop(0)
            else:
                walk.after_id = then

    def _besides(self, hour: datetime) -> list[Callable[[int], int | None]]:
        """The walks along what belongs to no job. Each looks at a bounded number of rows in a portion."""
        store, portion = self._store, self._portion_max
        walks: list[Callable[[int], int | None]] = [
            lambda after: after + 1 if store.key_expire(portion) == portion else None
        ]
        if self._keep.keys_as_jobs:
            walks.append(_Onward(("", ""), lambda after: store.key_forget(after, portion).next))
        if self._keep.log:
            before = hour - timedelta(days=self._keep.log)
            walks.append(lambda after: store.log_prune(before, after, portion, "retention").next)
        return walks

    def _prune(self, before: datetime, states: Sequence[str], after_id: int) -> int | None:
        if self._archive is None:
            return self._store.job_prune(before, after_id, self._portion, "retention", states).next_id
        return self._store.together(lambda verbs: self._put_away(verbs, before, states, after_id))

    def _put_away(self, verbs: Verbs, before: datetime, states: Sequence[str], after_id: int) -> int | None:
        """One transaction, so that what is deleted is what was written."""
        assert self._archive is not None
        old = verbs.job_prunable(before, after_id, self._portion, states)
        if old.ids:
            self._archive.write(verbs, old.ids, verbs.now())
            verbs.job_drop(old.ids, before, "retention")
        return old.next_id

    def _prune_runs(self, hour: datetime, after_id: int) -> int | None:
        """Pipeline runs that ended long ago; what they had staged goes sooner."""
        staged_before = hour - timedelta(days=self._keep.staged)
        before = hour - timedelta(days=self._keep.others) if self._keep.others else datetime.min.replace(tzinfo=UTC)
        return after_id if self._store.pipeline_prune(staged_before, before, self._portion).more else None

    def _prune_batches(self, before: datetime, after_id: int) -> int | None:
        """Batch runs that nothing is left to be done about, one at a time, each with all its targets."""
        return self._store.batch_prune(before, after_id, 1, "retention").next_id

    def _drop_results(self, after_id: int) -> int | None:
        return self._store.result_drop(after_id, self._portion).next_id


def _hour(moment: datetime) -> datetime:
    return moment.replace(minute=0, second=0, microsecond=0)
