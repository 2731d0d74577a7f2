"""Ops runs on SQLite: built from the verbs of jobs and two tables of their own."""

from __future__ import annotations

from collections.abc import Sequence

from detent.errors import DetentError, InvalidTransition, KeyConflict, LeaseLost, NotFound
from detent.lifecycle.library import OPS_RUN
from detent.model import json_codec
from detent.model.clock import from_micros
from detent.model.ops_records import (
    CLAIM_SECONDS,
    OPS_KEYS,
    OPS_QUEUE,
    OPS_TASK,
    SIGN_SECONDS,
    EnvironmentRow,
    NewOpsRun,
    OpsClaimed,
    OpsEnd,
    OpsRunRow,
    OpsToken,
    ops_state,
)
from detent.model.records import Abort, Appended, Cancelled, Enqueued, Finish, Moved, NewEvent, NewJob
from detent.store.jobs.sqlite_cancels import CancelRequest
from detent.store.jobs.sqlite_events import SqliteEvents
from detent.store.jobs.sqlite_row_by_row import SqliteRowByRow
from detent.store.sqlite.verb_base import Job, fields_named, ids_json, micros

__all__ = ["SqliteOps"]

_ENVIRONMENT = "SELECT id FROM detent_ops_environment WHERE project_id = ? AND name = ?"
_NEW_ENVIRONMENT = "INSERT INTO detent_ops_environment (id, project_id, name, created_at) VALUES (?, ?, ?, ?)"
_NEW_RUN = "INSERT INTO detent_ops_run (job_id, environment_id, git_sha, git_ref, key) VALUES (?, ?, ?, ?, ?)"
_CLAIMED = """
SELECT e.project_id, e.id, e.name, r.git_sha, r.git_ref
  FROM detent_ops_run r JOIN detent_ops_environment e ON e.id = r.environment_id WHERE r.job_id = ?
"""
_SIGN = "UPDATE detent_lease SET expires_at = max(expires_at, ?) WHERE id = ?"
_FINISHED_WITH = "UPDATE detent_ops_run SET finish_metadata = ? WHERE job_id = ?"
_RUN = OpsRunRow.__struct_fields__
_GET = f"""
SELECT {", ".join(f"v.{name}" for name in _RUN)}
  FROM json_each(?) asked JOIN detent_ops_runs v ON v.job_id = asked.value
"""
_LIST = f"""
SELECT {", ".join(_RUN)} FROM detent_ops_runs
 WHERE (:project_id IS NULL OR project_id = :project_id) AND (:env IS NULL OR env = :env)
   AND (:state IS NULL OR state = :state) AND job_id < coalesce(:before_id, 9223372036854775807)
 ORDER BY job_id DESC LIMIT :limit
"""
_ENVIRONMENTS = """
SELECT id, project_id, name, created_at FROM detent_ops_environment
 WHERE :project_id IS NULL OR project_id = :project_id ORDER BY project_id, name
"""
_REAPED_MAX = 100


class SqliteOps(SqliteEvents, SqliteRowByRow):
    """The verbs of ops runs."""

    def ops_queue(self, item: NewOpsRun) -> Enqueued | DetentError:
        what = {"env": item.env, "git_ref": item.git_ref, "git_sha": item.git_sha, "project_id": item.project_id}
        payload = json_codec.encode(what, field="run", size_max=1 << 20)
        job = NewJob(
            id=item.id,
            task=OPS_TASK,
            payload=payload,
            nonce=item.nonce,
            fingerprint="" if item.key is None else json_codec.fingerprint(OPS_TASK, payload),
            queue=OPS_QUEUE,
            key=None if item.key is None else f"{OPS_KEYS}{item.key}",
            expires_at=item.expires_at,
            metadata=item.metadata,
            attempts_max=1,
            dead_letter=False,
        )
        (answer,) = self.job_enqueue([job])
        if isinstance(answer, Enqueued) and answer.created:
            environment = self._environment(item.project_id, item.env)
            self._db.change(_NEW_RUN, (item.id, environment, item.git_sha, item.git_ref, item.key))
        return KeyConflict(item.key or "", "", answer.job_id) if isinstance(answer, KeyConflict) else answer

    def _environment(self, project_id: str, name: str) -> int:
        """Return the id of an environment, which is made the first time that it is named."""
        found = self._db.rows(_ENVIRONMENT, (project_id, name))
        if found:
            return int(found[0][0])
        number = self.ids_reserve(1)
        self._db.change(_NEW_ENVIRONMENT, (number, project_id, name, self._now()))
        return number

    def ops_claim(self, lease_id: int, worker: str) -> OpsClaimed | None:
        self._reap(_REAPED_MAX, OPS_TASK)
        self.job_expire(_REAPED_MAX)
        claimed = self.job_claim_each(
            (), lease_id=lease_id, worker=worker, queues=None, tasks=[OPS_TASK], limit=1, lease=CLAIM_SECONDS
        )
        if not claimed.jobs:
            return None
        (held,) = claimed.jobs
        payload = json_codec.encode({"worker_id": worker}, field="payload", size_max=1 << 20)
        said = NewEvent(
            job_id=held.job_id, attempt=None, level="info", message="Run claimed by worker", payload=payload
        )
        self.event_append([said])
        ((project_id, env_id, env, git_sha, git_ref),) = self._db.rows(_CLAIMED, (held.job_id,))
        return OpsClaimed(
            job_id=held.job_id,
            project_id=project_id,
            env_id=env_id,
            env=env,
            git_sha=git_sha,
            git_ref=git_ref,
            metadata=held.metadata or "{}",
            token=OpsToken(held.attempt, lease_id),
        )

    def ops_append(
        self,
        job_id: int,
        level: str,
        message: str,
        payload: str | None = None,
        key: str | None = None,
        token: OpsToken | None = None,
    ) -> Appended | DetentError:
        job = self._run(job_id)
        if isinstance(job, DetentError):
            return job
        if lost := _not_meant(job, token):
            return lost
        attempt = job.attempt if token is None else token.attempt
        line = NewEvent(job_id=job_id, attempt=attempt, level=level, message=message, payload=payload, key=key)
        (answer,) = self.event_append([line])
        if isinstance(answer, Appended):
            self._db.change(_SIGN, (self._now() + micros(SIGN_SECONDS), job.lease_id))
        return answer

    def ops_renew(self, job_id: int, token: OpsToken | None = None) -> Moved | DetentError:
        job, now = self._run(job_id), self._now()
        if isinstance(job, DetentError):
            return job
        attempt = job.attempt if token is None else token.attempt
        if lost := _not_meant(job, token) or self._lost(job, job_id, attempt, now):
            return lost
        self._db.change(_SIGN, (now + micros(SIGN_SECONDS), job.lease_id))
        return Moved(f"run-{job_id}", ops_state(job.state, job.started_at is not None), False)

    def ops_finish(
        self,
        job_id: int,
        state: OpsEnd,
        metadata: str,
        actor: str,
        reason: str | None = None,
        error: str | None = None,
        token: OpsToken | None = None,
    ) -> Moved | DetentError:
        job = self._run(job_id)
        if isinstance(job, DetentError):
            return job
        if lost := _not_meant(job, token):
            return lost
        now = self._now()
        found = ops_state(job.state, job.started_at is not None)
        if found == state or (state == "failed" and self._ended_as(job.id, job.attempt, "error")):
            return Moved(f"run-{job_id}", found, False)
        if found == "queued" and state == "cancelled":
            self._put_away(job, "cancelled", "cancel", actor, reason, now)
        elif found == "running" or (found == "claimed" and state == "cancelled"):
            if token is not None or state != "cancelled":
                attempt = job.attempt if token is None else token.attempt
                if not_held := self._lost(job, job_id, attempt, now):
                    return not_held
            self._end_run(job, state, actor, reason, error, now)
        else:
            return InvalidTransition("ops_run", f"run-{job_id}", found, state, OPS_RUN.allowed(found))
        self._db.change(_FINISHED_WITH, (metadata, job_id))
        ended = self._jobs([job_id])[job_id]
        return Moved(f"run-{job_id}", ops_state(ended.state, True), True)

    def _end_run(self, job: Job, state: OpsEnd, actor: str, reason: str | None, error: str | None, now: int) -> None:
        if state == "success":
            self.job_finish([Finish(job.id, job.attempt)], job.lease_worker)
            return
        if state == "cancelled":
            self._cancel(job.id, CancelRequest(actor, reason), now)
            return
        ending = Abort(job_id=job.id, attempt=job.attempt, outcome="error", error=error, fatal=True)
        self._end_as(job, ending, job.lease_worker, now)

    def _cancel(self, job_id: int, asked: CancelRequest, now: int) -> Cancelled | DetentError:
        """Cancel a job. An ops run ends at once: its holder does not renew, so it would not see a request."""
        answer = super()._cancel(job_id, asked, now)
        if isinstance(answer, DetentError) or answer.state != "running":
            return answer
        job = self._jobs([job_id])[job_id]
        if job.task != OPS_TASK:
            return answer
        ending = Abort(job_id=job_id, attempt=job.attempt, outcome="cancelled", fatal=True)
        self._end_as(job, ending, job.lease_worker, now)
        return Cancelled(job_id, "cancelled")

    def ops_cancel(self, job_id: int, actor: str, reason: str | None = None) -> Moved | DetentError:
        return self.ops_finish(job_id, "cancelled", "{}", actor, reason)

    def ops_get(self, ids: Sequence[int]) -> list[OpsRunRow | None]:
        found = {row[0]: OpsRunRow(**fields_named(_RUN, row)) for row in self._db.rows(_GET, (ids_json(ids),))}
        return [found.get(job_id) for job_id in ids]

    def ops_list(
        self,
        project_id: str | None = None,
        env: str | None = None,
        state: str | None = None,
        before_id: int | None = None,
        limit: int = 100,
    ) -> list[OpsRunRow]:
        chosen = {"project_id": project_id, "env": env, "state": state, "before_id": before_id, "limit": limit}
        return [OpsRunRow(**fields_named(_RUN, row)) for row in self._db.rows(_LIST, chosen)]

    def ops_environments(self, project_id: str | None = None) -> list[EnvironmentRow]:
        return [
            EnvironmentRow(id=number, project_id=project, name=name, created_at=from_micros(at))
            for number, project, name, at in self._db.rows(_ENVIRONMENTS, {"project_id": project_id})
        ]

    def _run(self, job_id: int) -> Job | NotFound:
        job = self._jobs([job_id]).get(job_id)
        return NotFound("ops_run", f"run-{job_id}") if job is None or job.task != OPS_TASK else job


def _not_meant(job: Job, token: OpsToken | None) -> LeaseLost | None:
    """Return the refusal of a token that is not that of the run's claim."""
    if token is None or (job.lease_id, job.attempt) == (token.lease_id, token.attempt):
        return None
    return LeaseLost(job.id, token.attempt, "another claim has it")
