"""What streams are about: the record, a job, or a run. A source reads pages of lines from the database."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from datetime import datetime
from itertools import takewhile
from typing import Any, Protocol

from detent.app.batch_run import BatchRun
from detent.app.detent import Detent
from detent.app.redaction import redaction_of
from detent.errors import InvalidInput, NotFound
from detent.http.bodies import encode, to_body
from detent.http.stream_places import FollowPlace, Item, LinePlace, Page, Place, RecordPlace
from detent.lifecycle.library import BATCH_RUN, JOB, PIPELINE_RUN
from detent.model.follow_records import ChangePlace, JobMark
from detent.model.record_cursor import RecordCursor
from detent.model.records import EventRow, TransitionRow

__all__ = ["JobSource", "RecordSource", "RunSource", "Source"]

PAGE_MAX = 200
"""Maximum number of lines that are read at once."""
_RANK_OF_START = 20
_RESTORED = "the id is beyond the record: it is of another database, or a backup was restored"
_PRUNED = "retention has deleted lines after this id; the stream continues with the oldest that is left"
_JOB_AT_REST = JOB.final | JOB.rests


class Source(Protocol):
    """A subject of streams. All methods but `parse` read the database, so they are called on threads."""

    @property
    def key(self) -> str:
        """What distinguishes it from other subjects."""
        ...

    @property
    def interval(self) -> float:
        """Seconds between two looks for new lines."""
        ...

    def parse(self, text: str) -> Place:
        """Return the place of an id. `InvalidInput`."""
        ...

    def beginning(self) -> Place | None:
        """Return the place where a subscriber without an id starts; None if it starts now."""
        ...

    def end(self) -> Place:
        """Return the place after everything that is there now. `NotFound`."""
        ...

    def read(self, place: Any) -> Page:
        """Return lines after a place."""
        ...


class RecordSource:
    """The record: every explicit change of anything."""

    key = "record"
    interval = 0.5

    def __init__(self, app: Detent) -> None:
        self._store = app.store
        self._redaction = redaction_of(app)

    def parse(self, text: str) -> RecordPlace:
        """Return the place of an id. `InvalidInput`."""
        return RecordPlace(RecordCursor.parse(text))

    def beginning(self) -> None:
        """Return None: subscribers without an id start now."""

    def end(self) -> RecordPlace:
        """Return the place after everything that is there now."""
        return self.parse(self._store.record_feed().next)

    def read(self, place: RecordPlace) -> Page:
        """Return lines after a place."""
        try:
            found = self._store.record_feed(place.text, PAGE_MAX)
        except InvalidInput:
            return Page(reset=_RESTORED, restart=self.end())
        rows = self._redaction.listed([line.row for line in found.lines])
        items = [
            Item("change", encode(to_body(row)), n=row.n, tenant=line.tenant)
            for row, line in zip(rows, found.lines, strict=True)
        ]
        return Page(
            items,
            found.more,
            reset=_PRUNED if found.pruned else "",
            examined=found.examined,
            decided=found.decided,
        )


class JobSource:
    """The events of a job, and the transitions of the job and its executions."""

    interval = 0.25

    def __init__(self, app: Detent, job_id: int, tenant: str | None) -> None:
        self._store = app.store
        self._redaction = redaction_of(app)
        self._tenant = tenant
        self.job_id = job_id
        self.key = f"job {job_id}"

    def parse(self, text: str) -> FollowPlace:
        """Return the place of an id. `InvalidInput`."""
        return FollowPlace.parse(text)

    def beginning(self) -> FollowPlace:
        """Return the place before the first line."""
        return FollowPlace()

    def mark(self) -> JobMark | None:
        """Return how far the job is; None if it is gone."""
        return self._store.job_marks([self.job_id])[0]

    def end(self) -> FollowPlace:
        """Return the place after everything that is there now. `NotFound`, also if it is a job of another tenant."""
        mark = self.mark()
        if mark is None or self._tenant not in (None, mark.tenant):
            raise NotFound("job", str(self.job_id))
        return FollowPlace(mark.seq, ChangePlace(mark.attempt, mark.rank, mark.n))

    def read(self, place: FollowPlace) -> Page:
        """Return lines after a place."""
        # The mark is read first: what it counts is found by the other two.
        mark = self.mark()
        if mark is None:
            return Page(gone=True)
        if place.seq > mark.seq or place.change.attempt > mark.attempt or place.change.n > mark.n:
            return Page(reset=_RESTORED, restart=self.beginning(), more=True)
        shown = self._redaction.of_job
        events = shown(self.job_id, self._store.job_events(self.job_id, place.seq, PAGE_MAX))
        changes = shown(self.job_id, self._store.job_changes(self.job_id, place.change, PAGE_MAX))
        more = PAGE_MAX in (len(events), len(changes))
        return Page(_merge(events, changes), more, ended=not more and mark.state in _JOB_AT_REST)


class RunSource:
    """The state changes of a batch run or a pipeline run, and the run itself as it is."""

    interval = 1.0

    def __init__(self, app: Detent, run_id: str, tenant: str | None) -> None:
        self._app = app
        self._tenant = tenant
        self._run_id = run_id
        self._entity = ""
        self.key = f"run {run_id}"

    def parse(self, text: str) -> LinePlace:
        """Return the place of an id. `InvalidInput`."""
        return LinePlace.parse(text)

    def beginning(self) -> LinePlace:
        """Return the place before the first line."""
        return LinePlace()

    def end(self) -> LinePlace:
        """Return the place before the first line: a run has few. `NotFound`, also if it is a run of another tenant."""
        run = self._app.runs.get(self._run_id)
        if self._tenant not in (None, run.row.tenant):
            raise NotFound("run", self._run_id)
        self._entity = BATCH_RUN.name if isinstance(run, BatchRun) else PIPELINE_RUN.name
        return LinePlace()

    def read(self, place: LinePlace) -> Page:
        """Return lines after a place, and the run."""
        try:
            run = self._app.runs.get(self._run_id)
        except NotFound:
            return Page(gone=True)
        rows = self._app.store.entity_changes(self._entity, self._run_id, place.n, PAGE_MAX)
        items = [Item("transition", encode(to_body(row)), n=row.n) for row in rows]
        more = len(rows) == PAGE_MAX
        ended = not more and (run.rests if isinstance(run, BatchRun) else run.ended)
        return Page(items, more, ended=ended, snapshot=encode(to_body(run)))


def _merge(events: Sequence[EventRow], changes: Sequence[TransitionRow]) -> list[Item]:
    """Return both in the order of time, each in its own order. If one was cut off, so is the other at that time."""
    if len(events) == PAGE_MAX:
        changes = list(takewhile(lambda row: row.at <= events[-1].at, changes))
    elif len(changes) == PAGE_MAX:
        events = list(takewhile(lambda row: row.at <= changes[-1].at, events))
    # At one time: the start of an attempt, then its events, then its end.
    lines: list[tuple[datetime, int, Item]] = [
        (row.at, 1, Item("event", encode(to_body(row)), seq=row.seq)) for row in events
    ]
    others = [(row.at, 0 if row.rank <= _RANK_OF_START else 2, _change(row)) for row in changes]
    return [item for _, _, item in heapq.merge(lines, others, key=lambda one: one[:2])]


def _change(row: TransitionRow) -> Item:
    data = encode(to_body(row))
    return Item("transition", data, n=row.n) if row.n else Item("transition", data, step=(row.attempt, row.rank))
