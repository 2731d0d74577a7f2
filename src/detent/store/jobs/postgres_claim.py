"""Claiming on PostgreSQL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, TypeAlias, Unpack

from detent.model.records import BadRow, Claimed, ClaimedEach
from detent.store.jobs.contract import ClaimTerms
from detent.store.postgres.statement import Row, Statement, numbers, texts, times
from detent.store.postgres.verb_base import VerbBase, requeues, runs
from detent.store.row_errors import cause_of

__all__ = ["Claim", "PostgresClaim", "job_claim", "version_columns"]

Place: TypeAlias = tuple[datetime, int]
Claim: TypeAlias = tuple[list[Claimed], dict[int, Place], int | None]
"""The jobs in the order of the claim, how far it has come in each lane, and the lane after which the next starts."""

_STATEMENTS_MAX = 4
"""Maximum number of statements of one claim. Each has skipped lanes that have no room."""
_CLAIM = """
SELECT job_id, attempt, task, payload, tenant, queue, metadata, correlation_id, traceparent, run_id, spared,
       attempts_max, bound_lanes, bound_ats, bound_ids, after_lane
  FROM detent.job_claim_v2(%s::bigint, %s::text, %s::text[], %s::text[], %s::integer, %s::double precision, %s::text[],
                           %s::text, %s::bigint[], %s::timestamptz[], %s::bigint[], %s::bigint, %s::text[],
                           %s::integer[])
"""
_FIND = """
SELECT job_id, attempt, task, payload, tenant, queue, metadata, correlation_id, traceparent, run_id, spared,
       attempts_max, committed
  FROM detent.claim_find_v1(%s::bigint)
"""
_CLAIM_EACH = """
SELECT job_id, attempt, task, payload, tenant, queue, metadata, correlation_id, traceparent, run_id, spared,
       attempts_max, bad, causes
  FROM detent.job_claim_each_v1(%s::bigint, %s::text, %s::text[], %s::text[], %s::integer, %s::double precision,
                                %s::text[], %s::text, %s::bigint[], %s::text[], %s::integer[])
"""


def job_claim(
    bounds: Mapping[int, Place] | None, after_lane: int | None, **terms: Unpack[ClaimTerms]
) -> Statement[Claim]:
    """Claim after `bounds` first. Without them the claim does not return how far it has come."""
    if bounds:
        bounds = dict(sorted(bounds.items()))

    def decode(rows: Sequence[Row]) -> Claim:
        places: dict[int, Place] = {}
        reached: int | None = None
        if rows and rows[0][0] is None:
            lanes, ats, ids, reached = rows[0][12:]
            if lanes is not None:
                places = {lane: (at, job_id) for lane, at, job_id in zip(lanes, ats, ids, strict=True)}
            rows = rows[1:]
        return [Claimed(*row[:12]) for row in rows], places, reached

    params = (
        *_params(terms),
        None if bounds is None else numbers(bounds),
        None if bounds is None else times((place[0] for place in bounds.values()), field="bound"),
        None if bounds is None else numbers(place[1] for place in bounds.values()),
        after_lane,
        *version_columns(terms.get("versions")),
    )
    return Statement(_CLAIM, params, decode)


def claim_find(lease_id: int) -> Statement[list[Claimed]]:
    return Statement(_FIND, (lease_id,), lambda rows: [Claimed(*row) for row in rows], writes=False)


def job_claim_each(skip: Sequence[int], **terms: Unpack[ClaimTerms]) -> Statement[ClaimedEach]:
    return Statement(
        _CLAIM_EACH, (*_params(terms), numbers(skip), *version_columns(terms.get("versions"))), _claimed_each
    )


def _params(terms: ClaimTerms) -> tuple[Any, ...]:
    queues, tenants = terms["queues"], terms.get("tenants")
    return (
        terms["lease_id"],
        terms["worker"],
        None if queues is None else texts(queues),
        texts(terms["tasks"]),
        terms["limit"],
        float(terms["lease"]),
        None if tenants is None else texts(tenants),
        terms.get("after_tenant"),
    )


def version_columns(versions: Mapping[str, Sequence[int]] | None) -> tuple[str | None, str | None]:
    """Return versions by task as two columns: tasks and versions."""
    if versions is None:
        return None, None
    pairs = [(task, version) for task, several in versions.items() for version in several]
    return texts(task for task, _ in pairs), numbers(version for _, version in pairs)


def _claimed_each(rows: Sequence[Row]) -> ClaimedEach:
    bad: tuple[BadRow, ...] = ()
    if rows and rows[-1][0] is None:
        *rows, (*_, ids, causes) = rows
        bad = tuple(
            BadRow("job", str(job_id), cause_of(Exception(cause)), job_id)
            for job_id, cause in zip(ids, causes, strict=True)
        )
    return ClaimedEach(tuple(Claimed(*row[:12]) for row in rows), bad)


class PostgresClaim(VerbBase):
    """`job_claim`, `job_claim_each` and `claim_find`."""

    claim_find = runs(claim_find)
    job_claim_each = requeues(runs(job_claim_each))

    def job_claim(self, **terms: Unpack[ClaimTerms]) -> list[Claimed]:
        """Claim after the bounds first, and before them if that was not enough. One statement skips some hundred lanes
        that have no room under their limits."""
        limit = terms["limit"]
        if limit <= 0:
            return []
        claimed: list[Claimed] = []
        for _ in range(_STATEMENTS_MAX):
            known, reached = (None, None) if self._bounds is None else (self._bounds.known(), self._bounds.after_lane)
            claimed = self._noted(self._session.run(job_claim(known, reached, **terms)), limit)
            if claimed or self._bounds is None or self._bounds.after_lane is None:
                break
        return claimed

    def _noted(self, claim: Claim, limit: int) -> list[Claimed]:
        """Return the claimed jobs, and remember how far the claim has come for the next one."""
        claimed, places, reached = claim
        if self._bounds is not None:
            self._bounds.after_lane = reached
            if len(claimed) == limit:
                self._bounds.reach(places)
            else:
                self._bounds.forget()
        return claimed
