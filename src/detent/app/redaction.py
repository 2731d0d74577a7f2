"""Redacts what the HTTP API and the command line show: secret fields of jobs."""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from typing import Any, TypeVar

import msgspec

from detent.app.detent import Detent
from detent.client.job import JobSnapshot
from detent.client.list_page import ListPage
from detent.model.records import JobDetails, JobRow, TransitionRow
from detent.model.service_records import DeadGroup, ScheduleRow
from detent.model.workflow_records import JobTree, TreeNode, Workflow
from detent.views.redaction import Redactor

__all__ = ["Redaction", "redaction_of"]

T = TypeVar("T")


class Redaction:
    """Redacts what verbs return. Without secret fields it does nothing and reads nothing of jobs."""

    def __init__(self, app: Detent) -> None:
        self._app: Detent = weakref.proxy(app)  # `redaction_of` must not keep it
        self._redactor = Redactor(lambda: self._app.store, app.clock, self._declared)

    def _declared(self) -> dict[str, tuple[str, ...]]:
        return {name: task.options.secret for name, task in self._app.tasks.items()}

    def answer(self, ids: dict[str, str], found: Any) -> Any:
        """Return what a verb returned as it may be shown. `ids` are those of the path."""
        if not self._redactor.paths():
            return found
        if isinstance(found, JobTree):
            return self.tree(found)
        if "job_id" in ids and not isinstance(found, JobSnapshot):
            return self.of_job(int(ids["job_id"]), found)
        if isinstance(found, list):
            return self.listed(found)
        return self._one(found, {})

    def job(self, row: JobRow) -> JobRow:
        """Return a job as it may be shown."""
        return self._redactor.job(row)

    def of_job(self, job_id: int, found: T) -> T:
        """Return what belongs to a job as it may be shown."""
        if self._redactor.paths():
            for row in self._rows([job_id]):
                return self._redactor.of_job(row, found)  # type: ignore[no-any-return]
        return found

    def listed(self, found: list[T]) -> list[T]:
        """Return the items of a list as they may be shown."""
        if not self._redactor.paths():
            return found
        jobs = {row.id: row for row in self._rows({one for one in map(_job_of, found) if one is not None})}
        shown = [self._one(one, jobs) for one in found]
        return ListPage(shown, found.next) if isinstance(found, ListPage) else shown

    def tree(self, found: JobTree) -> JobTree:
        """Return a tree of jobs as it may be shown."""
        return msgspec.structs.replace(found, nodes=self.listed(found.nodes))

    def _one(self, found: Any, jobs: dict[int, JobRow]) -> Any:
        match found:
            case JobSnapshot() if found._row is not None:
                return self._redactor.job(found.row)
            case ScheduleRow():
                return msgspec.structs.replace(found, payload=self._redactor.payload(found.task, found.payload))
            case TransitionRow() | DeadGroup() | Workflow() | TreeNode() | JobDetails():
                row = jobs.get(_job_of(found) or 0)
                return found if row is None else self._redactor.of_job(row, found)
            case _:
                return found

    def _rows(self, ids: Iterable[int]) -> list[JobRow]:
        wanted = sorted(ids)
        return [row for row in self._app.store.job_get(wanted) if row is not None] if wanted else []


_redactions: weakref.WeakKeyDictionary[Detent, Redaction] = weakref.WeakKeyDictionary()


def redaction_of(app: Detent) -> Redaction:
    """Return the redaction of an application, which its endpoints and streams share."""
    return _redactions.setdefault(app, Redaction(app))


def _job_of(found: Any) -> int | None:
    """Return the job that an item of a list is about, if the item is not the job itself."""
    if isinstance(found, DeadGroup):
        return found.sample_id
    if isinstance(found, JobDetails):
        return found.job_id
    if isinstance(found, Workflow | TreeNode):
        return found.id
    if isinstance(found, TransitionRow) and found.entity == "job" and found.entity_id.isdecimal():
        return int(found.entity_id)
    return None
