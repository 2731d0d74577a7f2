"""The records of pipeline runs that cross the store's contract.

Frozen, without behaviour; times, JSON and ids as in `records`.
"""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from msgspec import Struct

from detent.model.records import NewJob

__all__ = [
    "CARRYING_TASKS",
    "ELSEWHERE",
    "PAGE_TASK",
    "PIPELINE_ENDED",
    "PIPELINE_TASKS",
    "NewPage",
    "NewPartition",
    "NewPipelineRun",
    "PageStored",
    "PartitionRow",
    "PipelineRunRow",
    "Portion",
    "PrunedRuns",
    "WatermarkRow",
]

PIPELINE_TASKS = "detent.pipeline."
"""How the names of the tasks begin that carry pipeline runs; the database knows them by it."""

PAGE_TASK = f"{PIPELINE_TASKS}page/"

CARRYING_TASKS = (PAGE_TASK, f"{PIPELINE_TASKS}plan/", f"{PIPELINE_TASKS}consolidate/")
"""How the names of the tasks begin whose jobs are retried with their run only."""

PIPELINE_ENDED = frozenset({"completed", "failed"})
"""The states in which no job of a run is left to do. A failed run may be retried."""

ELSEWHERE = ""
"""The data of a staged record that lies in a table of the user's own: only its key is staged."""


class NewPipelineRun(Struct, frozen=True, kw_only=True):
    """A run to start, with the job that makes its plan; both ids were reserved before."""

    id: int
    name: str
    payload: str
    watermark: str
    plan: NewJob
    tenant: str = ""
    full: bool = False  # as if there were no watermark
    forced: bool = False  # consolidate though partitions failed
    started_by: str = "client"
    reason: str | None = None
    retires: bool = False  # keep the keys, so that it is known which are gone
    queue: str = "default"
    priority: int = 0
    replicas: int = 5
    portion_size: int = 2000


class PipelineRunRow(Struct, frozen=True, kw_only=True):
    """A run as it stands. Pages, records and what is staged are those of its partitions, added up."""

    id: int
    tenant: str
    name: str
    payload: str
    watermark: str
    since: datetime | None
    captured_at: datetime
    is_full: bool
    is_forced: bool
    started_by: str
    reason: str | None
    retires: bool
    state: str
    tolerated: int
    partitions: int
    parts_ended: int
    parts_failed: int
    pages: int
    records: int
    staged: int
    consolidated: int
    retired: int
    error: str | None
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    moved_at: datetime


class NewPartition(Struct, frozen=True):
    """One part of the plan, and the job that will fetch it."""

    n: int
    key: str
    payload: str
    job: NewJob


class PartitionRow(Struct, frozen=True, kw_only=True):
    """A partition of a pipeline run: the offset of its next page, and its pages and records so far."""

    run_id: int
    n: int
    key: str
    payload: str
    job_id: int
    state: str
    next_offset: str
    last_page: bool
    tries: int  # attempts since the last page, the one in flight among them
    pages: int
    records: int
    staged: int
    error: str | None
    started_at: datetime | None
    paged_at: datetime | None
    ended_at: datetime | None


class NewPage(Struct, frozen=True, kw_only=True):
    """A page to store: the records that lie at `offset`, no two of one key, and where the next page begins. Data which
    the user keeps is `ELSEWHERE`."""

    run_id: int
    n: int
    job_id: int
    attempt: int
    offset: str
    next_offset: str | None  # None: this was the last page
    keys: tuple[str, ...] = ()
    datas: tuple[str, ...] = ()


class PageStored(Struct, frozen=True):
    """What became of a page: `stored` is False where the partition stands elsewhere; then nothing was changed."""

    stored: bool
    next_offset: str
    last_page: bool


PortionKind = Literal["portion", "finish", "nothing", "over", "used_up"]


class Portion(Struct, frozen=True):
    """What a consolidating job has to do next.

    `portion`: these records. `finish`: all of them are consolidated, and this job ends the run. `nothing`: what is left
    is in other jobs' hands. `over`: the run has ended. `used_up`: a portion whose tries are used up, where 0 is the end
    of the run.
    """

    kind: PortionKind
    n: int = 0
    tries: int = 0  # this one among them
    records: tuple[tuple[str, str], ...] = ()


class WatermarkRow(Struct, frozen=True):
    """A watermark: the time up to which a source has been ingested, and the run that set it."""

    tenant: str
    name: str
    value: datetime
    run_id: int
    moved_at: datetime


class PrunedRuns(Struct, frozen=True):
    """How many rows went; `more` says that there are others to go."""

    rows: int
    more: bool
