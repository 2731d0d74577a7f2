"""Ops runs on PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence

from detent.errors import DetentError, IdConflict, InvalidTransition, KeyConflict, LeaseLost, NotFound
from detent.lifecycle.library import OPS_RUN
from detent.model.ops_records import EnvironmentRow, NewOpsRun, OpsClaimed, OpsEnd, OpsRunRow, OpsToken
from detent.model.records import Appended, Enqueued, Moved
from detent.store.postgres.statement import Row, Statement, moment, named, numbers
from detent.store.postgres.verb_base import VerbBase, runs, runs_each

__all__ = ["PostgresOps"]

_QUEUE = """
SELECT answer, job_id FROM detent.ops_queue_v2(
  %s::bigint, %s::bigint, %s::text, %s::text, %s::text, %s::text, %s::text, %s::text, %s::timestamptz)
"""
_CLAIM = """
SELECT job_id, attempt, project_id, env_id, env, git_sha, git_ref, metadata
  FROM detent.ops_claim_v1(%s::bigint, %s::text)
"""
_APPEND = """
SELECT seq, created, attempt, instead FROM detent.ops_append_v1(
  %s::bigint, %s::text, %s::text, %s::text, %s::text, %s::integer, %s::bigint)
"""
_FINISH = """
SELECT was, state, moved, refused, attempt, instead FROM detent.ops_finish_v1(
  %s::bigint, %s::text, %s::text, %s::text, %s::text, %s::text, %s::integer, %s::bigint)
"""
_CANCEL = """
SELECT was, state, moved, refused, attempt, instead FROM detent.ops_cancel_v1(%s::bigint, %s::text, %s::text)
"""
_RUN = OpsRunRow.__struct_fields__
_LIST = f"""
SELECT {", ".join(_RUN)} FROM detent.ops_list_v1(%s::text, %s::text, %s::text, %s::bigint, %s::integer)
"""
_GET = f"SELECT {', '.join(_RUN)} FROM detent.ops_get_v1(%s::bigint[])"
_ENVIRONMENT = EnvironmentRow.__struct_fields__
_ENVIRONMENTS = f"SELECT {', '.join(_ENVIRONMENT)} FROM detent.ops_environments_v1(%s::text)"


def ops_queue(item: NewOpsRun) -> Statement[Enqueued | DetentError]:
    def decode(rows: Sequence[Row]) -> Enqueued | DetentError:
        if not rows:
            return Enqueued(item.id, True)
        answer, job_id = rows[0]
        if answer == "found":
            return Enqueued(job_id, False)
        return IdConflict(job_id) if answer == "id_conflict" else KeyConflict(item.key or "", "", job_id)

    what = (item.project_id, item.env, item.git_sha, item.git_ref, item.metadata, item.key)
    expires_at = None if item.expires_at is None else moment(item.expires_at, field="expires_at")
    return Statement(_QUEUE, (item.id, item.nonce, *what, expires_at), decode)


def ops_claim(lease_id: int, worker: str) -> Statement[OpsClaimed | None]:
    def decode(rows: Sequence[Row]) -> OpsClaimed | None:
        if not rows:
            return None
        job_id, attempt, project_id, env_id, env, git_sha, git_ref, metadata = rows[0]
        return OpsClaimed(
            job_id=job_id,
            project_id=project_id,
            env_id=env_id,
            env=env,
            git_sha=git_sha,
            git_ref=git_ref,
            metadata=metadata,
            token=OpsToken(attempt, lease_id),
        )

    return Statement(_CLAIM, (lease_id, worker), decode)


def ops_append(
    job_id: int,
    level: str,
    message: str,
    payload: str | None = None,
    key: str | None = None,
    token: OpsToken | None = None,
) -> Statement[Appended | DetentError]:
    def decode(rows: Sequence[Row]) -> Appended | DetentError:
        if not rows:
            return _no_run(job_id)
        seq, created, attempt, instead = rows[0]
        return Appended(job_id, seq, created) if instead is None else LeaseLost(job_id, attempt, instead)

    return Statement(_APPEND, (job_id, level, message, payload, key, *_parts(token)), decode)


def ops_renew(job_id: int, token: OpsToken | None = None) -> Statement[Moved | DetentError]:
    def decode(rows: Sequence[Row]) -> Moved | DetentError:
        if not rows:
            return _no_run(job_id)
        state, attempt, instead = rows[0]
        return Moved(f"run-{job_id}", state, False) if instead is None else LeaseLost(job_id, attempt, instead)

    sql = "SELECT state, attempt, instead FROM detent.ops_renew_v1(%s::bigint, %s::integer, %s::bigint)"
    return Statement(sql, (job_id, *_parts(token)), decode)


def ops_finish(
    job_id: int,
    state: OpsEnd,
    metadata: str,
    actor: str,
    reason: str | None = None,
    error: str | None = None,
    token: OpsToken | None = None,
) -> Statement[Moved | DetentError]:
    params = (job_id, state, metadata, actor, reason, error, *_parts(token))
    return Statement(_FINISH, params, lambda rows: _ended(job_id, state, rows))


def ops_cancel(job_id: int, actor: str, reason: str | None = None) -> Statement[Moved | DetentError]:
    return Statement(_CANCEL, (job_id, actor, reason), lambda rows: _ended(job_id, "cancelled", rows))


def _ended(job_id: int, asked: OpsEnd, rows: Sequence[Row]) -> Moved | DetentError:
    if not rows:
        return _no_run(job_id)
    found, state, moved, refused, attempt, instead = rows[0]
    if instead is not None:
        return LeaseLost(job_id, attempt, instead)
    if refused:
        return InvalidTransition("ops_run", f"run-{job_id}", found, asked, OPS_RUN.allowed(found))
    return Moved(f"run-{job_id}", state, moved)


def ops_get(ids: Sequence[int]) -> Statement[list[OpsRunRow | None]]:
    def decode(rows: Sequence[Row]) -> list[OpsRunRow | None]:
        found = {run.job_id: run for run in _runs(rows)}
        return [found.get(job_id) for job_id in ids]

    return Statement(_GET, (numbers(ids),), decode, writes=False)


def ops_list(
    project_id: str | None = None,
    env: str | None = None,
    state: str | None = None,
    before_id: int | None = None,
    limit: int = 100,
) -> Statement[list[OpsRunRow]]:
    return Statement(_LIST, (project_id, env, state, before_id, limit), _runs, writes=False)


def ops_environments(project_id: str | None = None) -> Statement[list[EnvironmentRow]]:
    return Statement(
        _ENVIRONMENTS,
        (project_id,),
        lambda rows: [EnvironmentRow(**named(_ENVIRONMENT, row)) for row in rows],
        writes=False,
    )


def _runs(rows: Sequence[Row]) -> list[OpsRunRow]:
    return [OpsRunRow(**named(_RUN, row)) for row in rows]


def _parts(token: OpsToken | None) -> tuple[int | None, int | None]:
    return (None, None) if token is None else (token.attempt, token.lease_id)


def _no_run(job_id: int) -> NotFound:
    return NotFound("ops_run", f"run-{job_id}")


class PostgresOps(VerbBase):
    """The verbs of ops runs."""

    ops_queue = runs(ops_queue)
    ops_claim = runs(ops_claim)
    ops_append = runs(ops_append)
    ops_renew = runs(ops_renew)
    ops_finish = runs(ops_finish)
    ops_cancel = runs(ops_cancel)
    ops_get = runs_each(ops_get)
    ops_list = runs(ops_list)
    ops_environments = runs(ops_environments)
