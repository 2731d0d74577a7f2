"""Spawning children on SQLite. How they end is counted by a trigger."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from detent.errors import DetentError, KeyConflict
from detent.model.records import Enqueued, NewJob
from detent.model.workflow_records import CancelFound, Spawn, Spawned
from detent.store.limits.sqlite import SqliteLimits
from detent.store.workflows.children_limit import limit_key_of, limits_of_tasks, limits_to_put
from detent.store.workflows.rules import DEPTH_MAX, too_deep
from detent.store.workflows.sqlite_steps import Held, SqliteSteps

__all__ = ["SqliteChildren"]

_GROUP = "SELECT first_id, total FROM detent_child_group WHERE parent_id = ? AND generation = ? AND path = ?"
_NEW_GROUP = "INSERT INTO detent_child_group (parent_id, generation, path, first_id, total) VALUES (?, ?, ?, ?, ?)"
_CLOSE = "UPDATE detent_child_group SET closed = 1, total = ? WHERE parent_id = ? AND generation = ? AND path = ?"
_THERE = "SELECT id FROM detent_job WHERE parent_id = ? AND id >= ? AND id < ?"
# A workflow that has recorded nothing is one level below its parent.
_ABOUT = """
SELECT j.tenant, j.cancel_requested_at,
       coalesce((SELECT depth FROM detent_workflow WHERE job_id = j.id),
                (SELECT depth + 1 FROM detent_workflow WHERE job_id = j.parent_id), 0)
  FROM detent_job j WHERE j.id = ?
"""


class SqliteChildren(SqliteLimits, SqliteSteps):
    """`workflow_spawn`."""

    def workflow_spawn(self, item: Spawn) -> Spawned | CancelFound | DetentError:
        """All or nothing, under a savepoint."""
        now = self._now()
        step = item.step
        held = self._held([step.job_id], now)
        holder = held.get(step.job_id)
        if holder is None or holder.attempt != step.attempt:
            return self._why_not(step.job_id, step.attempt, now)
        self._db.change("SAVEPOINT spawn")
        answer = self._spawn(item, holder, held, now)
        if isinstance(answer, DetentError):
            self._db.change("ROLLBACK TO spawn")
            self._lanes.clear()
        self._db.change("RELEASE spawn")
        return answer

    def _spawn(self, item: Spawn, holder: Held, held: dict[int, Held], now: int) -> Spawned | CancelFound | DetentError:
        step = item.step
        place = (step.job_id, step.generation, step.path)
        first_id, total = next(iter(self._db.rows(_GROUP, place)), (None, None))
        if self._recorded([place]):
            return Spawned(step.path, first_id or item.first_id, total or item.total, False)
        ((tenant, cancel_requested_at, depth),) = self._db.rows(_ABOUT, (step.job_id,))
        if cancel_requested_at is not None:
            return CancelFound(step.job_id, step.attempt)
        if depth >= DEPTH_MAX:
            return too_deep()
        held[step.job_id] = self._begun(holder, step.version, step.generation)
        if first_id is None:
            first_id, total = item.first_id, item.total
            if not item.detached:
                self._db.change(_NEW_GROUP, (*place, first_id, total))
        if total != item.total and self._differs(item, first_id, total):
            return KeyConflict(step.path, tenant, step.job_id, "children")
        if (refused := self._limit_children(item) or self._enqueue_children(item, first_id)) is not None:
            return refused
        if item.closed:
            self._db.change(_CLOSE, (item.total, *place))
            (recorded,) = self._record([step], held, now)
            if isinstance(recorded, DetentError):
                return recorded
        return Spawned(step.path, first_id, item.total, True)

    def _differs(self, item: Spawn, first_id: int, total: int) -> bool:
        """Whether the group on record is not the one that is sent. Until it is closed, its size is an upper bound."""
        if not item.closed or item.total > total:
            return True
        return bool(self._db.rows(_THERE, (item.step.job_id, first_id + item.total, first_id + total)))

    def _limit_children(self, item: Spawn) -> DetentError | None:
        """Write the limit of the group, before any of its children is there."""
        if item.limit is None or not item.jobs:
            return None
        put = limits_to_put(item, self.limit_list(limits_of_tasks(item)))
        if isinstance(put, DetentError):
            return put
        for limit in put:
            self.limit_put(limit, f"job {item.step.job_id}")
        return None

    def _enqueue_children(self, item: Spawn, first_id: int) -> DetentError | None:
        """Enqueue the children that are not there, under the ids of their group: an attempt that was interrupted may
        have sent some of them. Return why that is refused."""
        parent_id = item.step.job_id
        place, key = first_id + item.place, limit_key_of(item)
        there = {row[0] for row in self._db.rows(_THERE, (parent_id, place, place + len(item.jobs)))}
        jobs: Sequence[NewJob] = [
            replace(job, id=job_id, parent_id=parent_id, group=0, limit_key=key or job.limit_key)
            for job, job_id in ((job, job.id - item.first_id + first_id) for job in item.jobs)
            if job_id not in there
        ]
        for job, answer in zip(jobs, self.job_enqueue(jobs), strict=True):
            match answer:
                case Enqueued(created=True):
                    continue
                case Enqueued():
                    # Another job has its key. It would never be counted as a child.
                    return KeyConflict(job.key or "", job.tenant, answer.job_id)
                case _:
                    return answer
        return None
