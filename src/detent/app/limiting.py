"""The part of `Detent` that is about limits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from detent.app.wiring import Wiring
from detent.client.client import actor_and_reason, one
from detent.client.task import SendableTask
from detent.declare.limit import Limit
from detent.declare.settings import Settings
from detent.errors import DetentError, InvalidInput
from detent.model import jsondoor
from detent.model.limit_records import LimitFilter, LimitRow, NewLimit
from detent.model.records import Moved
from detent.store.contract import Verbs
from detent.store.limiting import ALL_LIMITS, LIMITS_MAX

__all__ = ["Limiting"]

_LIST_MAX = 10_000


class Limiting:
    """Limits of tasks and queues."""

    settings: Settings
    _wiring: Wiring
    _tasks: dict[str, SendableTask[..., Any, Any]]
    _queue_limits: dict[str, NewLimit]

    def limit_queue(
        self,
        queue: str,
        *,
        concurrency: int | None = None,
        rate: float | None = None,
        per: float = 1.0,
        burst: float | None = None,
    ) -> None:
        """Declare the limit of a queue: how many of its jobs may run at once, or start in a time. Without any bound the
        declaration lifts the limit.

        Nothing is written here. A worker writes the declaration when it starts, and so does `detent migrate --app`; a
        change by `set_queue_limit` or `detent limits set` then stays until the declaration in the code changes.
        """
        item = self._queue_limit(queue, concurrency, rate, per, burst)
        if self._queue_limits.setdefault(item.key, item) != item:
            raise InvalidInput("limit", f"two limits declared for the queue {queue!r}", "one limit for each queue")

    def set_queue_limit(
        self,
        queue: str,
        *,
        concurrency: int | None = None,
        rate: float | None = None,
        per: float = 1.0,
        burst: float | None = None,
    ) -> None:
        """Write the limit of a queue now; without any bound the limit is lifted. It stays until it is set again, or
        until a worker starts whose code declares another limit than before."""
        self._wiring.store.limit_put(self._queue_limit(queue, concurrency, rate, per, burst))

    def _queue_limit(
        self, queue: str, concurrency: int | None, rate: float | None, per: float, burst: float | None
    ) -> NewLimit:
        name = jsondoor.text(queue, field="queue", bytes_max=self.settings.name_max)
        limit = Limit(rate=rate, per=per, burst=burst, concurrency=concurrency)
        return limit.under(f"queue:{name}", queues=(name,))

    def limits(self, key: str | None = None, *, after: str = "", limit: int = LIMITS_MAX) -> list[LimitRow]:
        """Return limits as they stand, by key: what runs under each, what is left of its rate, its pause and breaker.

        One answer has up to `limit` of them; pass the last key as `after` for the next ones. With `key`, only that
        limit, if there is one.
        """
        chosen = ALL_LIMITS if key is None else LimitFilter(keys=(self._limit_key(key),))
        if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= _LIST_MAX:
            raise InvalidInput("limit", repr(limit)[:80], f"a whole number from 1 to {_LIST_MAX}")
        return self._wiring.store.limit_list(chosen, after, limit)

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
        """Remove a limit that no code declares any more. If the code still declares it, `detent migrate --app` and a
        worker that starts while no other worker runs write it again. `InUse` while jobs wait or run under it,
        `NotFound`."""
        who, checked = actor_and_reason(actor, reason, self.settings), self._limit_key(key)

        def remove(verbs: Verbs) -> Moved | DetentError:
            rows = verbs.limit_list(LimitFilter(keys=(checked,)))
            members = [declared for row in rows for declared in _declared_as(row)]
            removed = verbs.limit_remove(checked, *who)
            for name in members if isinstance(removed, Moved) else ():
                verbs.declaration_put("limit", name, "", again=True)
            return removed

        return one(self._wiring.store.together(remove))

    def _declared_limits(self) -> dict[str, NewLimit]:
        """By what is bounded: a limit for each task and queue, though tasks may share a key with other programs."""
        of_queues = {name: item for item in self._queue_limits.values() for name in _declared_as(item)}
        of_tasks = {
            f"task:{name}": task.options.limit.under(task.limit_key, tasks=(name,))
            for name, task in self._tasks.items()
            if task.options.limit is not None
        }
        return dict(sorted((of_queues | of_tasks).items()))

    def _limit_key(self, key: str) -> str:
        return jsondoor.text(key, field="key", bytes_max=self.settings.name_max + len("queue:"))

    def _check_limit(self, task: SendableTask[..., Any, Any]) -> None:
        """Tasks that share a key share its limit. `InvalidInput` where this one says something else."""
        limit, key = task.options.limit, task.limit_key
        known = _by_key(self._tasks).get(key)
        if limit is not None and known is not None and known[0] != limit:
            raise InvalidInput("limit", f"two limits under the key {key!r}", "one limit for each key")


def _declared_as(limit: NewLimit | LimitRow) -> list[str]:
    return [*(f"task:{name}" for name in limit.tasks), *(f"queue:{name}" for name in limit.queues)]


def _by_key(tasks: Mapping[str, SendableTask[..., Any, Any]]) -> dict[str, tuple[Limit, tuple[str, ...]]]:
    found: dict[str, tuple[Limit, tuple[str, ...]]] = {}
    for name, task in sorted(tasks.items()):
        if task.options.limit is not None:
            names = found[task.limit_key][1] if task.limit_key in found else ()
            found[task.limit_key] = (task.options.limit, (*names, name))
    return found
