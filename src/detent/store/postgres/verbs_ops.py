"""The verbs of ops runs, as one statement each."""

from __future__ import annotations

from collections.abc import Sequence

from detent.errors import DetentError
from detent.model.ops_records import EnvironmentRow, NewOpsRun, OpsClaimed, OpsEnd, OpsRunRow, OpsToken
from detent.model.records import Appended, Enqueued, Moved
from detent.store.postgres.statements import ops
from detent.store.postgres.verb_base import VerbBase

__all__ = ["PostgresOps"]


class PostgresOps(VerbBase):
    """The contract's words hold."""

    def ops_queue(self, item: NewOpsRun) -> Enqueued | DetentError:
        """A job, and its row beside it."""
        return self._session.run(ops.ops_queue(item))

    def ops_claim(self, lease_id: int, worker: str) -> OpsClaimed | None:
        """Through the claim of jobs."""
        return self._session.run(ops.ops_claim(lease_id, worker))

    def ops_append(
        self,
        job_id: int,
        level: str,
        message: str,
        payload: str | None = None,
        key: str | None = None,
        token: OpsToken | None = None,
    ) -> Appended | DetentError:
        """The line, and the lease anew."""
        return self._session.run(ops.ops_append(job_id, level, message, payload, key, token))

    def ops_renew(self, job_id: int, token: OpsToken | None = None) -> Moved | DetentError:
        """The lease anew."""
        return self._session.run(ops.ops_renew(job_id, token))

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
        """By the rules of jobs."""
        return self._session.run(ops.ops_finish(job_id, state, metadata, actor, reason, error, token))

    def ops_cancel(self, job_id: int, actor: str, reason: str | None = None) -> Moved | DetentError:
        """On record."""
        return self._session.run(ops.ops_cancel(job_id, actor, reason))

    def ops_get(self, ids: Sequence[int]) -> list[OpsRunRow | None]:
        """In the order asked."""
        return self._session.run(ops.ops_get(ids)) if ids else []

    def ops_list(
        self,
        project_id: str | None = None,
        env: str | None = None,
        state: str | None = None,
        before_id: int | None = None,
        limit: int = 100,
    ) -> list[OpsRunRow]:
        """The newest first."""
        return self._session.run(ops.ops_list(project_id, env, state, before_id, limit))

    def ops_environments(self, project_id: str | None = None) -> list[EnvironmentRow]:
        """By project and name."""
        return self._session.run(ops.ops_environments(project_id))
