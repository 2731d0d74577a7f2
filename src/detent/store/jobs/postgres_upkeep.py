"""The upkeep of jobs on PostgreSQL: promotion, expiry, silent jobs, failure hooks, retention, identities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from detent.model.records import BadRow, EachDone, JobPlace, JobsPruned, Moved, Prunable, ResultsDropped
from detent.model.service_records import (
    IdentityRow,
    JobsLeft,
    KeysForgotten,
    RecoveryRow,
    SilentRow,
    TaskSecrets,
    TaskTimes,
)
from detent.store.jobs.postgres_claim import version_columns
from detent.store.postgres.statement import Row, Statement, moment, named, numbers, texts, utc
from detent.store.postgres.verb_base import VerbBase, requeues, runs
from detent.store.row_errors import cause_of

__all__ = ["PostgresUpkeep"]

_PROMOTE = "SELECT detent.job_promote_v1(%s::integer)"
_EXPIRE = "SELECT detent.job_expire_v1(%s::integer)"
_PROMOTE_EACH = "SELECT done, bad, causes FROM detent.job_promote_each_v1(%s::integer, %s::bigint[])"
_EXPIRE_EACH = "SELECT done, bad, causes FROM detent.job_expire_each_v1(%s::integer, %s::bigint[])"
_SILENT = SilentRow.__struct_fields__
_FIND_SILENT = f"""
SELECT {", ".join(_SILENT)}
  FROM detent.job_silent_v2(%s::text, %s::double precision, %s::double precision, %s::integer, %s::bigint[])
"""
_TIMES = TaskTimes.__struct_fields__
_PUT_TIMES = """
SELECT detent.task_times_put_v1(%s::text[], %s::double precision[], %s::double precision[], %s::double precision[])
"""
_LIST_TIMES = f"SELECT {', '.join(_TIMES)} FROM detent.task_times_list_v1()"
_RECOVERY = RecoveryRow.__struct_fields__
_SET_RECOVERY = (
    "SELECT detent.recovery_set_v1(%s::text, %s::double precision, %s::double precision, %s::text, %s::text)"
)
_LIST_RECOVERY = f"SELECT {', '.join(_RECOVERY)} FROM detent.recovery_list_v1()"
_FAILURE_REPORT_TAKE = (
    "SELECT job_id, attempt FROM detent.failure_report_take_v1(%s::text[], %s::integer, %s::double precision)"
)
_FAILURE_REPORT_PUT = "SELECT detent.failure_report_put_v1(%s::bigint[], %s::integer[], %s::text[])"
_FAILURE_REPORT_KEEP = "SELECT detent.failure_report_keep_v1(%s::bigint[], %s::integer[], %s::double precision)"
_FAILURE_REPORT_DONE = "SELECT detent.failure_report_done_v1(%s::bigint[], %s::integer[])"
_PRUNE = """
SELECT next_at, next_id, jobs
  FROM detent.job_prune_v1(%s::timestamptz, %s::timestamptz, %s::bigint, %s::integer, %s::text, %s::text[])
"""
_PRUNABLE = """
SELECT next_at, next_id, ids
  FROM detent.job_prunable_v1(%s::timestamptz, %s::timestamptz, %s::bigint, %s::integer, %s::text[])
"""
_DROP_JOBS = "SELECT detent.job_drop_v1(%s::bigint[], %s::timestamptz, %s::text, %s::text)"
_DROP_RESULTS = "SELECT next_at, next_id, results FROM detent.result_drop_v1(%s::timestamptz, %s::bigint, %s::integer)"
_FORGET = "SELECT keys, next_tenant, next_key FROM detent.key_forget_v1(%s::text, %s::text, %s::integer)"
_IDENTITY = ", ".join(IdentityRow.__struct_fields__)
_IDENTITIES = f"SELECT {_IDENTITY} FROM detent.identity_list_v1()"
_RENEW = f"SELECT {_IDENTITY} FROM detent.identity_renew_v1(%s::text, %s::text)"


def job_promote(limit: int) -> Statement[int]:
    return Statement(_PROMOTE, (limit,), lambda rows: int(rows[0][0]))


def job_expire(limit: int) -> Statement[list[int]]:
    return Statement(_EXPIRE, (limit,), lambda rows: [int(row[0]) for row in rows])


def job_promote_each(limit: int, skip: Sequence[int]) -> Statement[EachDone]:
    return Statement(_PROMOTE_EACH, (limit, numbers(skip)), _each)


def job_expire_each(limit: int, skip: Sequence[int]) -> Statement[EachDone]:
    return Statement(_EXPIRE_EACH, (limit, numbers(skip)), _each)


def _each(rows: Sequence[Row]) -> EachDone:
    done, bad, causes = rows[0]
    return EachDone(tuple(done), tuple(_bad(job_id, cause) for job_id, cause in zip(bad, causes, strict=True)))


def _bad(job_id: int, cause: str) -> BadRow:
    return BadRow("job", str(job_id), cause_of(Exception(cause)), job_id)


def job_silent(
    queue: str | None,
    stale_after: float | None,
    stalled_after: float | None,
    limit: int,
    lease_ids: Sequence[int] | None = None,
) -> Statement[list[SilentRow]]:
    params = (queue, stale_after, stalled_after, limit, None if lease_ids is None else numbers(lease_ids))
    return Statement(
        _FIND_SILENT, params, lambda rows: [SilentRow(**named(_SILENT, row)) for row in rows], writes=False
    )


def task_times_put(items: Sequence[TaskTimes]) -> Statement[None]:
    columns = [[getattr(item, name) for item in items] for name in ("stale_after", "stalled_after", "result_ttl")]
    return Statement(_PUT_TIMES, (texts([item.task for item in items]), *columns), lambda rows: None)


def task_times_list() -> Statement[list[TaskTimes]]:
    return Statement(_LIST_TIMES, (), lambda rows: [TaskTimes(**named(_TIMES, row)) for row in rows], writes=False)


def task_secrets_put(items: Sequence[TaskSecrets], replace: bool) -> Statement[None]:
    pairs = [(item.task, path) for item in items for path in item.paths]
    sql = "SELECT detent.task_secrets_put_v1(%s::text[], %s::text[], %s::text[], %s::boolean)"
    params = (texts(item.task for item in items), texts(task for task, _ in pairs), texts(path for _, path in pairs))
    return Statement(sql, (*params, replace), lambda rows: None)


def task_secrets_list() -> Statement[list[TaskSecrets]]:
    def decode(rows: Sequence[Row]) -> list[TaskSecrets]:
        return [TaskSecrets(task=task, paths=tuple(paths)) for task, paths in rows]

    return Statement("SELECT task, paths FROM detent.task_secrets_list_v1()", (), decode, writes=False)


def recovery_set(
    queue: str, stale_after: float | None, stalled_after: float | None, actor: str, reason: str | None = None
) -> Statement[Moved]:
    state = "approval" if stale_after is None and stalled_after is None else "automatic"
    params = (queue, stale_after, stalled_after, actor, reason)
    return Statement(_SET_RECOVERY, params, lambda rows: Moved(queue, state, bool(rows[0][0])))


def recovery_list() -> Statement[list[RecoveryRow]]:
    return Statement(
        _LIST_RECOVERY, (), lambda rows: [RecoveryRow(**named(_RECOVERY, row)) for row in rows], writes=False
    )


def job_left(
    tasks: Sequence[str],
    queues: Sequence[str] | None,
    versions: Mapping[str, Sequence[int]] | None = None,
    *,
    after: int = 0,
    limit: int = 10_000,
) -> Statement[JobsLeft]:
    sql = """
SELECT is_left, place
  FROM detent.job_left_v1(%s::text[], %s::text[], %s::text[], %s::integer[], %s::bigint, %s::integer)
"""
    asked = (texts(tasks), None if queues is None else texts(queues), *version_columns(versions))
    return Statement(sql, (*asked, after, limit), lambda rows: JobsLeft(*rows[0]), writes=False)


def failure_report_take(tasks: Sequence[str], limit: int, seconds: float) -> Statement[list[tuple[int, int]]]:
    return Statement(
        _FAILURE_REPORT_TAKE, (texts(tasks), limit, float(seconds)), lambda rows: [(row[0], row[1]) for row in rows]
    )


def failure_report_put(items: Sequence[tuple[int, int, str]]) -> Statement[None]:
    columns = (*_columns([item[:2] for item in items]), texts(task for _, _, task in items))
    return Statement(_FAILURE_REPORT_PUT, columns, lambda rows: None)


def failure_report_keep(failures: Sequence[tuple[int, int]], seconds: float) -> Statement[None]:
    return Statement(_FAILURE_REPORT_KEEP, (*_columns(failures), float(seconds)), lambda rows: None)


def failure_report_done(failures: Sequence[tuple[int, int]]) -> Statement[None]:
    return Statement(_FAILURE_REPORT_DONE, _columns(failures), lambda rows: None)


def _columns(failures: Sequence[tuple[int, int]]) -> tuple[str, str]:
    return numbers([job_id for job_id, _ in failures]), numbers([attempt for _, attempt in failures])


def job_prune(
    before: datetime, after: JobPlace | None, limit: int, actor: str, states: Sequence[str] | None = None
) -> Statement[JobsPruned]:
    params = (moment(before, field="before"), *_place(after), limit, actor, None if states is None else texts(states))
    return Statement(_PRUNE, params, lambda rows: JobsPruned(rows[0][2], _next(rows[0])))


def job_prunable(
    before: datetime, after: JobPlace | None, limit: int, states: Sequence[str] | None = None
) -> Statement[Prunable]:
    params = (moment(before, field="before"), *_place(after), limit, None if states is None else texts(states))
    return Statement(_PRUNABLE, params, lambda rows: Prunable(tuple(rows[0][2]), _next(rows[0])))


def _place(after: JobPlace | None) -> tuple[str | None, int | None]:
    return (None, None) if after is None else (moment(after.created_at, field="after"), after.id)


def _next(row: Row) -> JobPlace | None:
    return None if row[1] is None else JobPlace(utc(row[0]), row[1])


def job_drop(ids: Sequence[int], before: datetime, actor: str, reason: str | None) -> Statement[int]:
    params = (numbers(ids), moment(before, field="before"), actor, reason)
    return Statement(_DROP_JOBS, params, lambda rows: int(rows[0][0]))


def result_drop(after: JobPlace | None, limit: int) -> Statement[ResultsDropped]:
    return Statement(_DROP_RESULTS, (*_place(after), limit), lambda rows: ResultsDropped(rows[0][2], _next(rows[0])))


def key_expire(limit: int) -> Statement[int]:
    return Statement("SELECT detent.key_expire_v1(%s::integer)", (limit,), lambda rows: rows[0][0])


def key_forget(after: tuple[str, str], limit: int) -> Statement[KeysForgotten]:
    def decode(rows: Sequence[Row]) -> KeysForgotten:
        keys, tenant, key = rows[0]
        return KeysForgotten(keys, None if tenant is None else (tenant, key))

    return Statement(_FORGET, (*after, limit), decode)


def identity_list() -> Statement[list[IdentityRow]]:
    return Statement(_IDENTITIES, (), lambda rows: [_identity(row) for row in rows], writes=False)


def identity_renew(actor: str, reason: str | None = None) -> Statement[IdentityRow]:
    return Statement(_RENEW, (actor, reason), lambda rows: _identity(rows[0]))


def _identity(row: Row) -> IdentityRow:
    return IdentityRow(**named(IdentityRow.__struct_fields__, row))


class PostgresUpkeep(VerbBase):
    """The verbs of services."""

    job_promote = requeues(runs(job_promote))
    job_expire = runs(job_expire)
    job_promote_each = requeues(runs(job_promote_each))
    job_expire_each = runs(job_expire_each)
    job_silent = runs(job_silent)
    task_times_list = runs(task_times_list)
    task_secrets_put = runs(task_secrets_put)
    task_secrets_list = runs(task_secrets_list)
    recovery_set = runs(recovery_set)
    recovery_list = runs(recovery_list)
    failure_report_take = runs(failure_report_take)
    failure_report_put = runs(failure_report_put)
    failure_report_keep = runs(failure_report_keep)
    failure_report_done = runs(failure_report_done)
    job_left = runs(job_left)
    job_prune = runs(job_prune)
    job_prunable = runs(job_prunable)
    result_drop = runs(result_drop)
    key_expire = runs(key_expire)
    key_forget = runs(key_forget)
    identity_list = runs(identity_list)
    identity_renew = runs(identity_renew)

    def task_times_put(self, items: Sequence[TaskTimes]) -> None:
        """Write nothing if there are no tasks."""
        if items:
            self._session.run(task_times_put(items))

    def job_drop(self, ids: Sequence[int], before: datetime, actor: str, reason: str | None = None) -> int:
        """Record no horizon if there are no jobs."""
        return self._session.run(job_drop(ids, before, actor, reason)) if ids else 0
