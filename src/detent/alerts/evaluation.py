"""Evaluating alert policies: compare each with what was measured, raise alerts and resolve them.

An alert is raised again at every evaluation that finds the problem, so its row has the time at which the problem was
last seen. It is resolved when that time is long enough ago. So any number of processes may evaluate at once, and a
problem that comes and goes stays one alert.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import msgspec

from detent.alerts.delivery import deliver, sinks_of
from detent.alerts.message_text import duration_text, figure_text
from detent.alerts.policies import BELOW, in_force
from detent.alerts.sink_options import SinkOptions
from detent.model.alert_records import AlertRow, Asked, Figure, Policy
from detent.store.contract import Store

__all__ = ["Evaluation", "evaluate_and_deliver", "evaluate_policies"]

_SCOPES_MAX = 100
"""Maximum number of alerts per policy; the worst scopes are raised. More of them have one common cause."""
_FIRING_MAX = 10_000
_CALM_FOR = 60.0
_EVENT_CALM = 86_400.0
_SERVICE = "alerts"
_JOBS_MAX = 2_000
_KEEP = 30 * 86_400.0
_NEVER = 10**12


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The result of one evaluation: how many alerts changed, and for how many seconds no new alert can become due by
    the passing of time alone. `calm_for` is 0 if a measured time is growing now."""

    changed: int
    calm_for: float


def evaluate_policies(
    store: Store, policies: Mapping[str, Policy] | None = None, *, some_fire: bool = True
) -> Evaluation:
    """Raise alerts for what is wrong, and resolve those whose problem is gone. Without `policies`, use those in force.
    `some_fire` is False if the caller knows that no alert fires."""
    policies = in_force(store.alert_policy_list()) if policies is None else policies
    active = [policy for policy in policies.values() if policy.enabled and policy.measure != "event"]
    firing: dict[str, dict[str, AlertRow]] = {}
    for row in store.alert_list("firing", _FIRING_MAX) if some_fire else ():
        firing.setdefault(row.policy, {})[row.scope] = row
    asked = list(dict.fromkeys(map(_asked, active)))
    measured = dict(zip(asked, store.alert_measure(asked), strict=True))
    now, changed = store.now() if firing else None, 0
    for policy in active:
        figures = {_scope(policy, one): one for one in measured[_asked(policy)]}
        bad = _worst(policy, figures)
        for scope in bad:
            changed += _raise(store, policy, scope, figures[scope])
        for scope, row in firing.get(policy.name, {}).items():
            is_well = scope not in bad and not _is_bad(policy, figures.get(scope))
            if is_well and _is_calm(row, policy.calm_seconds, now):
                text = _well(policy, scope, figures.get(scope))
                changed += store.alert_resolve(policy.name, scope, text, policy.calm_seconds).changed
    for name, scopes in firing.items():
        known = policies.get(name)
        if known is None or known.measure == "event":
            calm = _EVENT_CALM if known is None else known.calm_seconds
            for scope, row in scopes.items():
                if _is_calm(row, calm, now):
                    text = f"it has not happened again for {duration_text(calm)}"
                    changed += store.alert_resolve(name, scope, text, calm).changed
    return Evaluation(changed, _calm_for(active, measured))


def evaluate_and_deliver(store: Store, sinks: SinkOptions, holder: int, seconds: float) -> int | None:
    """Evaluate every policy once and deliver what is pending. Return how many alerts changed.

    Every worker does the same in its service `alerts`. This is for installations without a Detent worker, in which
    `detent ops claim` and `detent alerts judge` do it instead. It takes the service for `seconds`, so calls do not
    overlap and take effect at most that often. Return None if a worker or another call has the service.
    """
    if store.service_take(_SERVICE, holder, seconds) is None:
        return None
    store.alert_tally(_JOBS_MAX)
    changed = evaluate_policies(store).changed
    store.alert_sweep(sinks.remind_hours * 3600 or _NEVER, _KEEP)
    found = sinks_of(sinks)
    store.alert_spread([sink.route for sink in found])
    for sink in found:
        deliver(store, sink, sinks.timeout)
    return changed


def _asked(policy: Policy) -> Asked:
    return policy.measure, policy.each, policy.window_seconds


def _calm_for(active: Sequence[Policy], measured: dict[Asked, list[Figure]]) -> float:
    """Return how long no threshold can be crossed: a waiting job gets older by itself, a future one starts at zero."""
    times = [_CALM_FOR]
    for policy in active:
        if policy.measure == "oldest_ready" and policy.threshold is not None:
            times.append(0.0 if measured[_asked(policy)] else policy.threshold)
    return min(times)


def _is_calm(row: AlertRow, calm: float, now: datetime | None) -> bool:
    """Whether the alert may be over. The store decides again when it resolves; this check saves a write."""
    return now is not None and (now - row.last_at).total_seconds() >= calm


def _scope(policy: Policy, figure: Figure) -> str:
    return f"{policy.each}:{figure.scope}" if policy.each != "whole" else ""


def _is_bad(policy: Policy, figure: Figure | None) -> bool:
    if figure is None or policy.threshold is None or figure.count < policy.count_min:
        return False
    return figure.value < policy.threshold if policy.measure in BELOW else figure.value > policy.threshold


def _worst(policy: Policy, figures: dict[str, Figure]) -> list[str]:
    bad = [scope for scope, figure in figures.items() if _is_bad(policy, figure)]
    return sorted(bad, key=lambda scope: figures[scope].value, reverse=policy.measure not in BELOW)[:_SCOPES_MAX]


def _raise(store: Store, policy: Policy, scope: str, figure: Figure) -> bool:
    facts = {
        "measure": policy.measure,
        "value": figure.value,
        "threshold": policy.threshold,
        "count": figure.count,
        "window_seconds": policy.window_seconds,
    }
    text = policy.message.format(**_filled(policy, scope, figure))
    raised = store.alert_raise(
        policy.name, scope, policy.severity, text, msgspec.json.encode(facts).decode(), figure.value
    )
    return raised.changed


def _well(policy: Policy, scope: str, figure: Figure | None) -> str:
    if figure is None or figure.count < policy.count_min:
        return f"nothing is wrong in {_named(scope)} any more"
    places = _filled(policy, scope, figure)
    return f"{policy.measure.replace('_', ' ')} of {places['scope']} is {places['value']} again"


def _filled(policy: Policy, scope: str, figure: Figure) -> dict[str, str]:
    assert policy.threshold is not None
    return {
        "value": figure_text(policy.measure, figure.value),
        "threshold": figure_text(policy.measure, policy.threshold),
        "count": str(figure.count),
        "scope": _named(scope),
        "window": duration_text(policy.window_seconds),
    }


def _named(scope: str) -> str:
    return " ".join(scope.split(":", 1)) if scope else "all queues"
