"""Workflows on SQLite."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from detent.errors import DetentError
from detent.model.workflow_records import (
    Arrived,
    ChildGroupRow,
    NewSignal,
    NewStep,
    NewWait,
    Parked,
    SignalRow,
    SignalSent,
    Spawn,
    Spawned,
    StepBegun,
    StepPage,
    StepRecorded,
    VersionCount,
    WaitRow,
    WorkflowHistory,
    WorkflowRow,
)
from detent.store.jobs.sqlite_endings import SqliteEndings

__all__ = ["SqliteWorkflows"]


class SqliteWorkflows(SqliteEndings):
    """The verbs of workflows."""

    def workflow_load(
        self, job_id: int, attempt: int, *, after: str | None = None, limit: int = 1000
    ) -> WorkflowHistory | DetentError:
        raise NotImplementedError

    def step_begin(self, items: Sequence[NewStep]) -> list[StepBegun | DetentError]:
        raise NotImplementedError

    def step_record(self, items: Sequence[NewStep]) -> list[StepRecorded | DetentError]:
        raise NotImplementedError

    def workflow_wait(self, items: Sequence[NewWait], worker: str) -> list[Parked | Arrived | DetentError]:
        raise NotImplementedError

    def workflow_spawn(self, item: Spawn) -> Spawned | DetentError:
        raise NotImplementedError

    def signal_send(self, items: Sequence[NewSignal], *, apart: bool = False) -> list[SignalSent | DetentError]:
        raise NotImplementedError

    def workflow_wake(self, limit: int) -> int:
        raise NotImplementedError

    def workflow_get(self, ids: Sequence[int]) -> list[WorkflowRow | None]:
        raise NotImplementedError

    def step_list(
        self,
        job_id: int,
        *,
        generation: int | None = None,
        at: datetime | None = None,
        after: str | None = None,
        limit: int = 1000,
    ) -> StepPage:
        raise NotImplementedError

    def signal_list(self, job_id: int, *, after: int = 0, limit: int = 1000) -> list[SignalRow]:
        raise NotImplementedError

    def wait_list(
        self,
        *,
        job_id: int | None = None,
        signal: str | None = None,
        tenant: str | None = None,
        after: tuple[int, int] = (0, 0),
        limit: int = 100,
    ) -> list[WaitRow]:
        raise NotImplementedError

    def child_groups(self, parent_id: int) -> list[ChildGroupRow]:
        raise NotImplementedError

    def child_list(
        self, parent_id: int, *, path: str | None = None, state: str | None = None, after_id: int = 0, limit: int = 1000
    ) -> list[int]:
        raise NotImplementedError

    def workflow_versions(self, task: str | None = None) -> list[VersionCount]:
        raise NotImplementedError
