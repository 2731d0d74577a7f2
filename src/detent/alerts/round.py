"""One round of judging and delivering alerts, for installations in which no Detent worker runs.

Every worker does the same in its service `alerts`. Where shell scripts are all the workers there are, `detent ops
claim` and `detent alerts judge` do it instead.
"""

from __future__ import annotations

from detent.alerts.courier import deliver, sinks_of
from detent.alerts.judge import look
from detent.alerts.options import SinkOptions
from detent.store.contract import Store

__all__ = ["judge_once"]

_SERVICE = "alerts"
_JOBS_MAX = 2_000
_KEEP = 30 * 86_400.0
_NEVER = 10**12


def judge_once(store: Store, sinks: SinkOptions, holder: int, seconds: float) -> int | None:
    """Count what ended, judge every policy, and deliver what is pending. Return how many alerts changed.

    Takes the service of the workers for `seconds`, so that rounds do not overlap and come at most that often. None if a
    worker, or another round, has it.
    """
    if store.service_take(_SERVICE, holder, seconds) is None:
        return None
    store.alert_tally(_JOBS_MAX)
    changed = look(store).changed
    store.alert_sweep(sinks.remind_hours * 3600 or _NEVER, _KEEP)
    found = sinks_of(sinks)
    store.alert_spread([sink.route for sink in found])
    for sink in found:
        deliver(store, sink, sinks.timeout)
    return changed
