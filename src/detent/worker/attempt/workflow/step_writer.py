"""Group commit for the records of workflows: what many of them write at the same time goes into one transaction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from detent.errors import DetentError
from detent.model.workflow_records import NewStep, NewWait, Park, WorkflowHistory
from detent.store.contract import Store, Verbs
from detent.store.group_writer import GroupWriter

__all__ = ["StepWriter"]

Item = NewStep | NewWait | Park


class StepWriter(GroupWriter[Item, Any]):
    """Writes steps, looks at waits and parks, each item for its own workflow. All of them may be repeated: what is on
    record is answered again."""

    def __init__(self, store: Store, worker: str) -> None:
        self.worker = worker
        self.loads = GroupWriter[tuple[int, int], WorkflowHistory | DetentError](
            store, lambda items: store.workflow_load_many(items), batch_max=200
        )
        """Reads what is on record when attempts begin, many at a time."""
        super().__init__(store, self._write_items, batch_max=500)

    def _write_items(self, items: Sequence[Item]) -> list[Any]:
        kinds = {type(item) for item in items}
        if len(kinds) == 1:
            return self._write_kinds(self._store, items)
        return self._store.together(lambda verbs: self._write_kinds(verbs, items))

    def _write_kinds(self, verbs: Verbs, items: Sequence[Item]) -> list[Any]:
        """Steps first: a wait of the same batch may be of the same workflow, and a park is the last that it writes."""
        steps = [item for item in items if isinstance(item, NewStep)]
        waits = [item for item in items if isinstance(item, NewWait)]
        parks = [item for item in items if isinstance(item, Park)]
        answers: dict[type, Any] = {
            NewStep: iter(verbs.step_record(steps) if steps else ()),
            NewWait: iter(verbs.wait_look(waits) if waits else ()),
            Park: iter(verbs.workflow_park(parks, self.worker) if parks else ()),
        }
        return [next(answers[type(item)]) for item in items]
