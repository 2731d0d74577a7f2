"""Whether something is wrong: every policy is held against what is measured.

What is bad is raised at every look, so that the time of the last bad look is on its row; what is not bad is resolved
when that time is long enough ago. So any number of judges may sit at once, and what comes and goes is one alert.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import msgspec

from detent.alerts.policies import BELOW, in_force
from detent.alerts.words import amount, span
from detent.model.alert_records import AlertRow, Asked, Figure, Policy
from detent.store.contract import Store

__all__ = ["Judged", "look"]

_SCOPES_MAX = 100
"""Of one policy, the worst of them: where more are wrong, it is one thing that is wrong."""
_FIRING_MAX = 10_000
_CALM_FOR = 60.0
_EVENT_CALM = 86_400.0


@dataclass(frozen=True, slots=True)
class Judged:
    """What came of a look: how many alerts changed, and for how many seconds nothing can become wrong by the passing
    of time alone that is not seen to grow by then; 0 where something does grow."""

    changed: int
    calm_for: float


def look(store: Store, policies: Mapping[str, Policy] | None = None, *, some_fire: bool = True) -> Judged:
    """Raise what is wrong and resolve what is well again, by these policies or by those that are in force now.
    `some_fire`: whether any alert may be firing as it begins."""
    policies = in_force(store.alert_policy_list()) if policies is None else policies
    held = [policy for policy in policies.values() if policy.enabled and policy.measure != "event"]
    firing: dict[str, dict[str, AlertRow]] = {}
    for row in store.alert_list("firing", _FIRING_MAX) if some_fire else ():
        firing.setdefault(row.policy, {})[row.scope] = row
    asked = list(dict.fromkeys(map(_asked, held)))
    measured = dict(zip(asked, store.alert_measure(asked), strict=True))
    now, changed = store.now() if firing else None, 0
    for policy in held:
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
                    text = f"it has not happened again for {span(calm)}"
                    changed += store.alert_resolve(name, scope, text, calm).changed
    return Judged(changed, _calm_for(held, measured))


def _asked(policy: Policy) -> Asked:
    return policy.measure, policy.each, policy.window_seconds


def _calm_for(held: Sequence[Policy], measured: dict[Asked, list[Figure]]) -> float:
    """What waits grows older by itself; what is not there yet has all of its time before it."""
    times = [_CALM_FOR]
    for policy in held:
        if policy.measure == "oldest_ready" and policy.threshold is not None:
            times.append(0.0 if measured[_asked(policy)] else policy.threshold)
    return min(times)


def _is_calm(row: AlertRow, calm: float, now: datetime | None) -> bool:
    """Whether it may be over; decided again where it is resolved, and looked at first, since that is a write."""
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
        "value": amount(policy.measure, figure.value),
        "threshold": amount(policy.measure, policy.threshold),
        "count": str(figure.count),
        "scope": _named(scope),
        "window": span(policy.window_seconds),
    }


def _named(scope: str) -> str:
    return " ".join(scope.split(":", 1)) if scope else "all queues"
