"""The part of `Detent` that writes down what the declared tasks say of themselves."""

from __future__ import annotations

from detent.app.limiting import Limiting
from detent.declare.task import Options
from detent.model.service_records import TaskTimes

__all__ = ["Declared"]

_NEVER = 1e9
"""Seconds: some thirty years."""


class Declared(Limiting):
    """Limits and times of tasks."""

    def put_declared(self) -> None:
        """Write down the limits of the declared tasks, when their jobs count as silent, and for how long their results
        are kept. A worker does it when it starts; what is known already is not written again."""
        self.put_limits()
        store = self._wiring.store
        known = {one.task: one for one in store.times_list()}
        said = [_times(name, task.options) for name, task in sorted(self._tasks.items())]
        changed = [one for one in said if known.get(one.task, TaskTimes(task=one.task)) != one]
        if changed:
            store.times_put(changed)


def _times(name: str, options: Options) -> TaskTimes:
    silent = (options.stale_after, options.stalled_after)
    stale, stalled = (None if seconds is None else float(min(seconds, _NEVER)) for seconds in silent)
    kept = None if options.result_ttl is None else float(options.result_ttl)
    return TaskTimes(task=name, stale_after=stale, stalled_after=stalled, result_ttl=kept)
