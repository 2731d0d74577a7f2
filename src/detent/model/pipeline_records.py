"""The records of pipeline runs: runs, partitions, pages and watermarks. Frozen, as in `records`."""

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
    "ConsolidationStep",
    "NewPage",
    "NewPartition",
    "NewPipelineRun",
    "PageStored",
    "PartitionRow",
    "PipelineRunRow",
    "PrunedRuns",
    "WatermarkRow",
]

PIPELINE_TASKS = "detent.pipeline."
"""The prefix of the names of the tasks of pipelines. The database recognises them by it."""

PAGE_TASK = f"{PIPELINE_TASKS}page/"

CARRYING_TASKS = (PAGE_TASK, f"{PIPELINE_TASKS}plan/", f"{PIPELINE_TASKS}consolidate/")
"""The prefixes of the names of tasks whose jobs are retried only together with their run."""

PIPELINE_ENDED = frozenset({"completed", "failed", "cancelled"})
"""The states in which a run has ended. A failed run may be retried."""

ELSEWHERE = ""
"""The data of a staged record that is in a table of the user: only its key is staged."""


class NewPipelineRun(Struct, frozen=True, kw_only=True):
    """A run to start, with the job that plans it. Both ids were reserved before."""

    id: int
    name: str
    payload: str
    watermark: str
    plan: NewJob
    tenant: str = ""
    full: bool = False  # fetch everything, as if there were no watermark
    forced: bool = False  # consolidate even if partitions fail
    started_by: str = "client"
    reason: str | None = None
    retires: bool = False  # keep the keys, to find those that are gone
    queue: str = "default"
    priority: int = 0
    replicas: int = 5
    portion_size: int = 2000


class PipelineRunRow(Struct, frozen=True, kw_only=True):
    """A pipeline run. `pages`, `records` and `staged` are the sums of its partitions."""

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
    """A partition of the plan, with the job that will fetch it."""

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
    tries: int  # attempts since the last page, including the one in flight
    pages: int
    records: int
    staged: int
    error: str | None
    started_at: datetime | None
    paged_at: datetime | None
    ended_at: datetime | None


class NewPage(Struct, frozen=True, kw_only=True):
    """A page to store: the records at `offset`, with distinct keys, and the offset of the next page. Data that the user
    stores is `ELSEWHERE`."""

    run_id: int
    n: int
    job_id: int
    attempt: int
    offset: str
    next_offset: str | None  # None: this was the last page
    keys: tuple[str, ...] = ()
    datas: tuple[str, ...] = ()


class PageStored(Struct, frozen=True):
    """The result of storing a page: `stored` is False, and nothing was changed, if the partition is at another
    offset."""

    stored: bool
    next_offset: str
    last_page: bool


ConsolidationKind = Literal["portion", "finish", "nothing", "over", "used_up"]


class ConsolidationStep(Struct, frozen=True):
    """What a consolidating job has to do next.

    - `portion`: consolidate these records.
    - `finish`: all records are consolidated, and this job ends the run.
    - `nothing`: other jobs have the remaining records.
    - `over`: the run has ended.
    - `used_up`: the tries of portion `n` are used up; 0 is the end of the run.
    """

    kind: ConsolidationKind
    n: int = 0
    tries: int = 0  # including this one
    records: tuple[tuple[str, str], ...] = ()


class WatermarkRow(Struct, frozen=True):
    """A watermark: the time up to which a source has been ingested, and the run that set it."""

    tenant: str
    name: str
    value: datetime
    run_id: int
    moved_at: datetime


class PrunedRuns(Struct, frozen=True):
    """How many rows were deleted; `more` is true if there are others to delete."""

    rows: int
    more: bool
