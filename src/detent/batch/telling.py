"""Who is told of runs: of those that ended with failures beyond what is tolerated, once for each end."""

from __future__ import annotations

from datetime import datetime, timedelta

import msgspec

from detent.model.alert_records import Severity
from detent.model.batch_records import BatchFilter, BatchRunRow
from detent.store.contract import Verbs

__all__ = ["tell_of_mismatches", "tell_of_runs"]

_POLICIES: dict[str, tuple[str, Severity]] = {
    "partial": ("run_partial", "warning"),
    "failed": ("run_failed", "critical"),
}
_LOOKED_AT = 100
_ALERTS_MAX = 1_000
_FRESH = timedelta(hours=1)
"""What ended longer ago was told, or is no news."""


def tell_of_runs(verbs: Verbs) -> int:
    """Raise an alert for each run that came to rest partial or failed, unless that is tolerated; resolve those of runs
    that did well since. How many were raised. Any number of callers at once tell each of them once."""
    raised, since = 0, verbs.now() - _FRESH
    ended = {state: verbs.batch_list(BatchFilter(state=state), None, _LOOKED_AT) for state in _POLICIES}
    fresh = [row for rows in ended.values() for row in rows if _is_news(row, since)]
    known = {
        (alert.policy, alert.scope): alert
        for alert in verbs.alert_list(None if fresh else "firing", _ALERTS_MAX)
        if alert.policy in _NAMES
    }
    for row in fresh:
        policy, severity = _POLICIES[row.state]
        told = known.get((policy, _scope(row)))
        if told is None or row.finished_at is None or told.last_at < row.finished_at:
            message = f"run {row.id} of {row.batch} is {row.state}: {row.failed} targets failed, {row.applied} did not"
            verbs.alert_raise(policy, _scope(row), severity, message, _facts(row), float(row.failed))
            raised += 1
    for (policy, scope), alert in known.items():
        found = verbs.batch_get(int(scope.removeprefix("run:"))) if alert.state == "firing" else None
        if found is not None and found.state in ("applied", "rolled_back"):
            verbs.alert_resolve(policy, scope, f"run {found.id} of {found.batch} is {found.state} now")
    return raised


def _is_news(row: BatchRunRow, since: datetime) -> bool:
    return row.finished_at is not None and row.finished_at >= since and not row.tolerated and not row.outstanding


def tell_of_mismatches(verbs: Verbs, row: BatchRunRow) -> None:
    """After a look at the world: raise the alert of a run of which something differs, or resolve it."""
    if row.mismatches:
        message = f"run {row.id} of {row.batch}: {row.mismatches} of {row.applied} targets are not what they were made"
        verbs.alert_raise("mismatches_found", _scope(row), "warning", message, _facts(row), float(row.mismatches))
    else:
        verbs.alert_resolve("mismatches_found", _scope(row), f"every target of run {row.id} is what it was made")


_NAMES = frozenset(policy for policy, _ in _POLICIES.values())


def _scope(row: BatchRunRow) -> str:
    return f"run:{row.id}"


def _facts(row: BatchRunRow) -> str:
    counted = ("applied", "failed", "mismatches")
    facts = {"run_id": str(row.id), "batch": row.batch, "tenant": row.tenant}
    return msgspec.json.encode(facts | {name: getattr(row, name) for name in counted}).decode()
