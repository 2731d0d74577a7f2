"""The verbs of services and of the claim row by row, for a batch that a damaged row makes fail."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

from detent.model.records import BadRow, Claimed, ClaimedEach, EachDone, Reaped
from detent.store.ahead import ClaimTerms
from detent.store.apart import cause_of
from detent.store.postgres.statements.base import Row, Statement, numbers, texts

__all__ = ["job_claim_each", "job_expire_each", "job_promote_each", "lease_reap_each"]

_CLAIM = """
SELECT job_id, attempt, task, payload, tenant, queue, metadata, correlation_id, traceparent, run_id, spared,
       attempts_max, bad, causes
  FROM detent.job_claim_each_v1(%s::bigint, %s::text, %s::text[], %s::text[], %s::integer, %s::double precision,
                                %s::text[], %s::text, %s::bigint[])
"""
_PROMOTE = "SELECT done, bad, causes FROM detent.job_promote_each_v1(%s::integer, %s::bigint[])"
_EXPIRE = "SELECT done, bad, causes FROM detent.job_expire_each_v1(%s::integer, %s::bigint[])"
_REAP = """
SELECT leases, aborted, recovered, passed_over, bad_leases, bad_jobs, causes
  FROM detent.lease_reap_each_v2(%s::integer, %s::bigint[], %s::double precision)
"""


def job_claim_each(skip: Sequence[int], **terms: Unpack[ClaimTerms]) -> Statement[ClaimedEach]:
    """Return the claimed jobs, and the rows that could not be claimed."""
    queues, tenants = terms["queues"], terms.get("tenants")
    params = (
        terms["lease_id"],
        terms["worker"],
        None if queues is None else texts(queues),
        texts(terms["tasks"]),
        terms["limit"],
        float(terms["lease"]),
        None if tenants is None else texts(tenants),
        terms.get("after_tenant"),
        numbers(skip),
    )
    return Statement(_CLAIM, params, _claimed)


def _claimed(rows: Sequence[Row]) -> ClaimedEach:
    bad: tuple[BadRow, ...] = ()
    if rows and rows[-1][0] is None:
        *rows, (*_, ids, causes) = rows
        bad = tuple(_bad(job_id, cause, job_id) for job_id, cause in zip(ids, causes, strict=True))
    return ClaimedEach(tuple(Claimed(*row[:12]) for row in rows), bad)


def job_promote_each(limit: int, skip: Sequence[int]) -> Statement[EachDone]:
    """Return the moved jobs, and those that could not be moved."""
    return Statement(_PROMOTE, (limit, numbers(skip)), _each)


def job_expire_each(limit: int, skip: Sequence[int]) -> Statement[EachDone]:
    """Return the cancelled jobs, and those that could not be cancelled."""
    return Statement(_EXPIRE, (limit, numbers(skip)), _each)


def lease_reap_each(limit: int, skip: Sequence[int], grace: float | None = None) -> Statement[Reaped]:
    """Return what one pass did, and the jobs that could not be ended."""
    return Statement(_REAP, (limit, numbers(skip), grace), _reaped)


def _each(rows: Sequence[Row]) -> EachDone:
    done, bad, causes = rows[0]
    return EachDone(tuple(done), tuple(_bad(job_id, cause, job_id) for job_id, cause in zip(bad, causes, strict=True)))


def _reaped(rows: Sequence[Row]) -> Reaped:
    leases, aborted, recovered, passed_over, *bad = rows[0]
    found = tuple(_bad(job_id, cause, lease_id) for lease_id, job_id, cause in zip(*bad, strict=True))
    return Reaped(leases, tuple(aborted), tuple(recovered), passed_over, found)


def _bad(job_id: int, cause: str, skip_id: int) -> BadRow:
    return BadRow("job", str(job_id), cause_of(Exception(cause)), skip_id)
