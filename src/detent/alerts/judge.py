"""Whether something is wrong: every policy is held against what is measured.

What is bad is raised at every look, so that the time of the last bad look is on its row; what is not bad is resolved
when that time is long enough ago. So any number of judges may sit at once, and what comes and goes is one alert.
"""

from __future__ import annotations

from datetime import datetime

import msgspec

from detent.alerts.policies import BELOW, in_force
from detent.alerts.words import amount, span
from detent.model.alert_records import AlertRow, Each, Figure, Measure, Policy
from detent.store.contract import Store

__all__ = ["look"]

_SCOPES_MAX = 100
"""Of one policy, the worst of them: where more are wrong, it is one thing that is wrong."""
_FIRING_MAX = 10_000
_EVENT_CALM = 86_400.0


def look(store: Store) -> int:
    """Raise what is wrong and resolve what is well again; how many alerts changed by that."""
    policies = in_force(store.alert_policy_list())
    firing: dict[str, dict[str, AlertRow]] = {}
    for row in store.alert_list("firing", _FIRING_MAX):
        firing.setdefault(row.policy, {})[row.scope] = row
    measured: dict[tuple[Measure, Each, float], list[Figure]] = {}
    now, changed = store.now(), 0
    for policy in policies.values():
        if not policy.enabled or policy.measure == "event":
            continue
        asked = (policy.measure, policy.each, policy.window_seconds)
        if asked not in measured:
            measured[asked] = store.alert_figures(*asked)
        figures = {_scope(policy, one): one for one in measured[asked]}
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
                    text = f"it has not happened again for {span(calm)}"
                    changed += store.alert_resolve(name, scope, text, calm).changed
    return changed


def _is_calm(row: AlertRow, calm: float, now: datetime) -> bool:
    """Whether it may be over; decided again where it is resolved, and looked at first, since that is a write."""
    return (now - row.last_at).total_seconds() >= calm


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
        "value": amount(policy.measure, figure.value),
        "threshold": amount(policy.measure, policy.threshold),
        "count": str(figure.count),
        "scope": _named(scope),
        "window": span(policy.window_seconds),
    }


def _named(scope: str) -> str:
    return " ".join(scope.split(":", 1)) if scope else "all queues"
