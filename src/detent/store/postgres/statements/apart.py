"""The services' verbs row by row, for a batch that a damaged row makes fail."""

from __future__ import annotations

from collections.abc import Sequence

from detent.model.records import BadRow, EachDone, Reaped
from detent.store.apart import cause_of
from detent.store.postgres.statements.base import Row, Statement, numbers

__all__ = ["job_expire_each", "job_promote_each", "lease_reap_each"]

_PROMOTE = "SELECT done, bad, causes FROM detent.job_promote_each_v1(%s::integer, %s::bigint[])"
_EXPIRE = "SELECT done, bad, causes FROM detent.job_expire_each_v1(%s::integer, %s::bigint[])"
_REAP = """
SELECT leases, aborted, recovered, passed_over, bad_leases, bad_jobs, causes
  FROM detent.lease_reap_each_v1(%s::integer, %s::bigint[])
"""


def job_promote_each(limit: int, skip: Sequence[int]) -> Statement[EachDone]:
    """Return the moved jobs, and those that could not be moved."""
    return Statement(_PROMOTE, (limit, numbers(skip)), _each)


def job_expire_each(limit: int, skip: Sequence[int]) -> Statement[EachDone]:
    """Return the cancelled jobs, and those that could not be cancelled."""
    return Statement(_EXPIRE, (limit, numbers(skip)), _each)


def lease_reap_each(limit: int, skip: Sequence[int]) -> Statement[Reaped]:
    """Return what one pass did, and the jobs that could not be ended."""
    return Statement(_REAP, (limit, numbers(skip)), _reaped)


def _each(rows: Sequence[Row]) -> EachDone:
    done, bad, causes = rows[0]
    return EachDone(tuple(done), tuple(_bad(job_id, cause, job_id) for job_id, cause in zip(bad, causes, strict=True)))


def _reaped(rows: Sequence[Row]) -> Reaped:
    leases, aborted, recovered, passed_over, *bad = rows[0]
    found = tuple(_bad(job_id, cause, lease_id) for lease_id, job_id, cause in zip(*bad, strict=True))
    return Reaped(leases, tuple(aborted), tuple(recovered), passed_over, found)


def _bad(job_id: int, cause: str, skip_id: int) -> BadRow:
    return BadRow("job", str(job_id), cause_of(Exception(cause)), skip_id)
