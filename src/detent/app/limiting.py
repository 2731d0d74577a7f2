"""The part of `Detent` that is about limits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from detent.app.wiring import Wiring
from detent.client.client import actor_and_reason, one
from detent.client.task import SendableTask
from detent.declare.limit import Limit
from detent.declare.settings import Settings
from detent.errors import InvalidInput
from detent.model import jsondoor
from detent.model.limit_records import LimitRow
from detent.model.records import Moved

__all__ = ["Limiting"]


class Limiting:
    """Limits of tasks and queues."""

    settings: Settings
    _wiring: Wiring
    _tasks: dict[str, SendableTask[..., Any, Any]]

    def limit_queue(
        self,
        queue: str,
        *,
        concurrency: int | None = None,
        rate: float | None = None,
        per: float = 1.0,
        burst: float | None = None,
    ) -> None:
        """Let only so many jobs of a queue run at once, or begin in a time; without any bound the limit is lifted.
        Written at once, and kept until it is said otherwise."""
        name = jsondoor.text(queue, field="queue", bytes_max=self.settings.name_max)
        limit = Limit(rate=rate, per=per, burst=burst, concurrency=concurrency)
        self._wiring.store.limit_put(limit.under(f"queue:{name}", queues=(name,)))

    def limits(self) -> list[LimitRow]:
        """Every limit as it stands: what runs under it, what is left of its rate, its pause and its breaker."""
        return self._wiring.store.limit_list()

    def pause_limit(self, key: str, *, actor: str, reason: str | None = None) -> Moved:
        """Let no job begin under a limit until it is reset; what runs goes on. A key that jobs have is a limit too.
        `NotFound`."""
        who = actor_and_reason(actor, reason, self.settings)
        return one(self._wiring.store.limit_pause(self._limit_key(key), *who))

    def reset_limit(self, key: str, *, actor: str, reason: str | None = None) -> Moved:
        """End a pause, whoever made it, close the breaker and fill the bucket of a limit. `NotFound`."""
        who = actor_and_reason(actor, reason, self.settings)
        return one(self._wiring.store.limit_reset(self._limit_key(key), *who))

    def remove_limit(self, key: str, *, actor: str, reason: str | None = None) -> Moved:
        """Take a limit away that no code declares any more; the worker that still declares it makes it again when it
        starts. `InUse` while jobs wait or run under it, `NotFound`."""
        who = actor_and_reason(actor, reason, self.settings)
        return one(self._wiring.store.limit_remove(self._limit_key(key), *who))

    def put_limits(self) -> None:
        """Write down the limits of the declared tasks. A worker does it when it starts."""
        for key, (limit, names) in sorted(_by_key(self._tasks).items()):
            self._wiring.store.limit_put(limit.under(key, tasks=names))

    def _limit_key(self, key: str) -> str:
        return jsondoor.text(key, field="key", bytes_max=self.settings.name_max + len("queue:"))

    def _check_limit(self, task: SendableTask[..., Any, Any]) -> None:
        """Tasks that share a key share its limit. `InvalidInput` where this one says something else."""
        limit, key = task.options.limit, task.limit_key
        known = _by_key(self._tasks).get(key)
        if limit is not None and known is not None and known[0] != limit:
            raise InvalidInput("limit", f"two limits under the key {key!r}", "one limit for each key")


def _by_key(tasks: Mapping[str, SendableTask[..., Any, Any]]) -> dict[str, tuple[Limit, tuple[str, ...]]]:
    found: dict[str, tuple[Limit, tuple[str, ...]]] = {}
    for name, task in sorted(tasks.items()):
        if task.options.limit is not None:
            names = found[task.limit_key][1] if task.limit_key in found else ()
            found[task.limit_key] = (task.options.limit, (*names, name))
    return found
