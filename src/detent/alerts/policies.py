"""Alert policies: the defaults, and checking those that operators set."""

from __future__ import annotations

import math
import string
from collections.abc import Iterable
from typing import Any

from msgspec.structs import asdict

from detent.errors import InvalidInput
from detent.model.alert_records import EACH, MEASURES, SEVERITIES, Each, Measure, Policy, PolicyRow, Severity

__all__ = ["BELOW", "DEFAULTS", "PLACES", "check_policy", "in_force"]

_DAY = 86_400.0
_SECONDS_MAX = _DAY
_CALM_MAX = 30 * _DAY
_THRESHOLD_MAX = 1e12
_COUNTS_MAX = 9_999
_MESSAGE_MAX = 500

BELOW: frozenset[Measure] = frozenset({"success_rate"})
"""Measures that alert below their threshold; all others alert above it."""

PLACES = ("value", "threshold", "count", "scope", "window")
"""The placeholders of a message."""

_COUNTED: frozenset[Measure] = frozenset({"dead_letters", "throttled"})
_POSSIBLE: dict[Measure, tuple[Each, ...]] = {
    "event": ("whole",),
    "success_rate": ("whole", "queue", "task"),
    "dead_letters": ("whole", "queue", "task"),
    "throttled": ("whole", "queue", "task"),
    "breaker_open": ("limit",),
    "oldest_ready": ("whole", "queue", "task"),
    "undelivered": ("whole",),
}


def _measured(
    name: str,
    measure: Measure,
    threshold: float,
    severity: Severity,
    message: str,
    *,
    each: Each = "whole",
    window: float = 0.0,
    count_min: int = 0,
    calm: float = 300.0,
) -> Policy:
    return Policy(
        name=name,
        measure=measure,
        each=each,
        severity=severity,
        threshold=threshold,
        window_seconds=window,
        count_min=count_min,
        calm_seconds=calm,
        message=message,
    )


def _event(name: str, severity: Severity, message: str) -> Policy:
    return Policy(
        name=name,
        measure="event",
        each="whole",
        severity=severity,
        threshold=None,
        window_seconds=0.0,
        count_min=0,
        calm_seconds=_DAY,
        message=message,
    )


_RATE = "{value} of the {count} jobs that ended in {scope} in {window} succeeded, less than {threshold}"
_DEAD = "{value} jobs are quarantined in {scope}, more than {threshold}"

DEFAULTS: dict[str, Policy] = {
    policy.name: policy
    for policy in (
        _measured("success_rate_low", "success_rate", 0.97, "warning", _RATE, each="queue", window=900.0, count_min=20),
        _measured(
            "success_rate_critical", "success_rate", 0.90, "critical", _RATE, each="queue", window=900.0, count_min=20
        ),
        _measured("dead_letters_many", "dead_letters", 50, "warning", _DEAD),
        _measured("dead_letters_critical", "dead_letters", 100, "critical", _DEAD),
        _measured(
            "throttled_burst",
            "throttled",
            3,
            "warning",
            "{value} attempts in {scope} were throttled by the remote service in {window}, more than {threshold}",
            window=300.0,
        ),
        _measured(
            "breaker_open",
            "breaker_open",
            0,
            "warning",
            "the breaker of {scope} is open: the remote service throttles every attempt",
            each="limit",
            calm=60.0,
        ),
        _measured(
            "queue_stalled",
            "oldest_ready",
            900.0,
            "warning",
            "the oldest job that is due in {scope} has been waiting for {value}, longer than {threshold}",
            each="queue",
            calm=60.0,
        ),
        _event("invariant_violated", "critical", "an invariant of the record does not hold"),
        _event("row_damaged", "critical", "a damaged row was skipped; everything else goes on"),
        _event("log_growth", "warning", "a reader keeps the write-ahead log from being reset"),
        _event("run_partial", "warning", "a batch run ended with failed targets"),
        _event("run_failed", "critical", "a batch run failed"),
        _event("mismatches_found", "warning", "reconciliation found targets that no longer match what was applied"),
        _event("consolidation_skipped", "warning", "partitions failed: nothing was consolidated, the watermark stays"),
        _event("consolidation_failed", "critical", "consolidation failed: the watermark stays"),
        _event("pipeline_failed", "critical", "a pipeline run failed: the watermark stays"),
    )
}
"""The default policies by name, in the order in which they are shown."""


def in_force(rows: Iterable[PolicyRow]) -> dict[str, Policy]:
    """Return the policies in force: the defaults, replaced and complemented by those that operators set."""
    fields = Policy.__struct_fields__
    return DEFAULTS | {row.name: Policy(**{name: asdict(row)[name] for name in fields}) for row in rows}


def check_policy(policy: Policy) -> Policy:
    """Check a policy, and return it. `InvalidInput`."""
    for field, value, allowed in (
        ("measure", policy.measure, MEASURES),
        ("severity", policy.severity, SEVERITIES),
        ("each", policy.each, EACH),
    ):
        if value not in allowed:
            raise InvalidInput(field, repr(value)[:80], ", ".join(allowed))
    if policy.each not in _POSSIBLE[policy.measure]:
        of = f"{policy.each!r} for {policy.measure}"
        raise InvalidInput("each", of, ", ".join(_POSSIBLE[policy.measure]))
    if policy.measure == "event":
        if policy.threshold is not None:
            raise InvalidInput("threshold", f"{policy.threshold!r} for an event", "none: nothing is measured")
    else:
        most = 1 if policy.measure in BELOW else _COUNTS_MAX if policy.measure in _COUNTED else _THRESHOLD_MAX
        _number("threshold", policy.threshold, most)
    _number("window", policy.window_seconds, _SECONDS_MAX)
    _number("calm", policy.calm_seconds, _CALM_MAX)
    if isinstance(policy.count_min, bool) or not isinstance(policy.count_min, int) or policy.count_min < 0:
        raise InvalidInput("count_min", repr(policy.count_min)[:80], "a whole number from 0")
    if policy.measure in ("success_rate", "throttled") and policy.window_seconds < 60:
        raise InvalidInput("window", f"{policy.window_seconds:g} s for {policy.measure}", "60 seconds or more")
    _check_message(policy.message)
    return policy


def _number(field: str, value: Any, most: float) -> None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if not is_number or not 0 <= value <= most:
        raise InvalidInput(field, repr(value)[:80], f"a number from 0 to {most:g}")


def _check_message(message: Any) -> None:
    if not isinstance(message, str) or not message.strip() or len(message) > _MESSAGE_MAX:
        raise InvalidInput("message", repr(message)[:80], f"a text of 1 to {_MESSAGE_MAX} characters")
    try:
        places = [(name, spec, how) for _, name, spec, how in string.Formatter().parse(message) if name is not None]
    except ValueError as error:
        raise InvalidInput("message", f"{message[:80]!r}: {error}", "braces only around placeholders") from None
    if any(name not in PLACES or spec or how for name, spec, how in places):
        raise InvalidInput("message", repr(message)[:80], f"in braces only {', '.join(PLACES)}")
