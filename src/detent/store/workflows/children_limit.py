"""The limit of a group of children, in terms of the limits that jobs have: the same for both databases.

A group with a limit has one of its own, and its children have the key of that. A job is under the limit of its key only
if its task has a limit: so the task gets one without bounds, if it has none.
"""

from __future__ import annotations

from collections.abc import Sequence

from detent.errors import InvalidInput
from detent.model.limit_records import ChildrenLimit, LimitFilter, LimitRow, NewLimit, limit_of_child_task
from detent.model.workflow_records import Spawn

__all__ = ["limit_key_of", "limits_of_tasks", "limits_to_put"]


def limit_key_of(item: Spawn) -> str | None:
    """Return the key of the limit of a group; None if it has none."""
    step = item.step
    return None if item.limit is None else ChildrenLimit(step.job_id, step.generation, step.path).key


def limits_of_tasks(item: Spawn) -> LimitFilter:
    """Return which limits to read before children are spawned under a limit."""
    return LimitFilter(tasks=tuple(sorted({job.task for job in item.jobs})))


def limits_to_put(item: Spawn, found: Sequence[LimitRow]) -> list[NewLimit] | InvalidInput:
    """Return the limits to write, given those of the children's tasks. `InvalidInput` if a task has another limit."""
    key = limit_key_of(item)
    assert key is not None
    put = [NewLimit(key=key, concurrency_max=item.limit)]
    for task in limits_of_tasks(item).tasks or ():
        own = limit_of_child_task(task)
        keys = [row.key for row in found if task in row.tasks]
        if not keys:
            put.append(NewLimit(key=own, tasks=(task,)))
        elif keys != [own]:
            return InvalidInput(
                "limit",
                f"{item.limit} for children of task {task!r}, which is under the limit {keys[0]!r}",
                "one of the two limits; besides, the queue of the task may have one",
            )
    return put
