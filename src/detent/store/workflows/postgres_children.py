"""Spawning children on PostgreSQL. How they end is counted by a trigger."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from detent.errors import DetentError, KeyConflict, LeaseLost
from detent.model.records import Enqueued, NewJob
from detent.model.uniform_jobs import as_uniform, representatives
from detent.model.workflow_records import CancelFound, Spawn, Spawned
from detent.store.jobs.postgres_enqueue import job_enqueue
from detent.store.limits.postgres import limit_list, limit_put
from detent.store.postgres.driver.session import Session
from detent.store.postgres.statement import Row, Statement
from detent.store.postgres.verb_base import VerbBase
from detent.store.workflows.children_limit import limit_key_of, limits_of_tasks, limits_to_put
from detent.store.workflows.postgres_steps import flags_of, ran_us
from detent.store.workflows.rules import too_deep

__all__ = ["PostgresChildren"]

_JOBS_AT_ONCE = 1000
_BEGIN = """
SELECT answer, first_id, total, there, instead
  FROM detent.workflow_spawn_v1(%s::bigint, %s::integer, %s::integer, %s::integer, %s::text, %s::integer, %s::text,
                             %s::text, %s::bigint, %s::text, %s::text, %s::integer, %s::text,
                             %s::bigint, %s::integer, %s::boolean, %s::boolean, %s::integer, %s::integer)
"""


def _spawn_begin(item: Spawn) -> Statement[tuple[Spawned, Sequence[int]] | CancelFound | DetentError]:
    """Return the group, and which of its children are there already."""
    step = item.step

    def decode(rows: Sequence[Row]) -> tuple[Spawned, Sequence[int]] | CancelFound | DetentError:
        answer, first_id, total, there, instead = rows[0]
        if answer == "conflict":
            return KeyConflict(step.path, instead, step.job_id, "children")
        if answer == "deep":
            return too_deep()
        if instead is not None:
            return LeaseLost(step.job_id, step.attempt, instead)
        if answer == "cancel":
            return CancelFound(step.job_id, step.attempt)
        return Spawned(step.path, first_id, total, answer != "known"), there or ()

    params = (
        *(step.job_id, step.attempt, step.version, step.generation, step.path, step.seq, step.kind, step.value),
        *(ran_us(step), step.scope, step.fingerprint, flags_of(step), step.error),
        *(item.first_id, item.total, item.closed, item.detached, item.place, len(item.jobs)),
    )
    return Statement(_BEGIN, params, decode)


class PostgresChildren(VerbBase):
    """`workflow_spawn`."""

    def workflow_spawn(self, item: Spawn) -> Spawned | CancelFound | DetentError:
        """All or nothing, in one transaction."""
        parent_id, key = item.step.job_id, limit_key_of(item)
        jobs = as_uniform(
            [replace(job, parent_id=parent_id, group=None, limit_key=key or job.limit_key) for job in item.jobs]
        )
        if self._lanes is not None:
            self._lanes.ensure(representatives(jobs))

        def spawn(session: Session) -> Spawned | CancelFound | DetentError:
            begun = session.run(_spawn_begin(item))
            if not isinstance(begun, tuple):
                return begun
            group, there = begun
            if group.created:
                if key is not None and item.jobs:
                    _limit(session, item)
                _enqueue(session, _missing(item, jobs, group.first_id, there))
            return group

        try:
            spawned = self._session.together(spawn)
        except _ChildRefused as refused:
            return refused.error
        self._forget_bounds()
        return spawned


class _ChildRefused(Exception):
    """Rolls the transaction back."""

    def __init__(self, error: DetentError) -> None:
        super().__init__(str(error))
        self.error = error


def _limit(session: Session, item: Spawn) -> None:
    """Write the limit of the group, before any of its children is there."""
    found = session.run(limit_list(limits_of_tasks(item)))
    put = limits_to_put(item, found)
    if isinstance(put, DetentError):
        raise _ChildRefused(put)
    for limit in put:
        session.run(limit_put(limit, f"job {item.step.job_id}"))


def _missing(item: Spawn, jobs: Sequence[NewJob], first_id: int, there: Sequence[int]) -> Sequence[NewJob]:
    """Return the children that are not there, under the ids of their group: an interrupted attempt may have sent
    some of them."""
    if first_id == item.first_id and not there:
        return jobs
    known = set(there)
    moved = [replace(job, id=job.id - item.first_id + first_id) for job in jobs]
    return as_uniform([job for job in moved if job.id not in known])


def _enqueue(session: Session, jobs: Sequence[NewJob]) -> None:
    for start in range(0, len(jobs), _JOBS_AT_ONCE):
        portion = jobs[start : start + _JOBS_AT_ONCE]
        answers = session.run(job_enqueue(portion, notify=False))
        for place, answer in enumerate(answers):
            match answer:
                case Enqueued(created=True):
                    continue
                case Enqueued():
                    # Another job has its key. It would never be counted as a child.
                    job = portion[place]
                    raise _ChildRefused(KeyConflict(job.key or "", job.tenant, answer.job_id))
                case _:
                    raise _ChildRefused(answer)
