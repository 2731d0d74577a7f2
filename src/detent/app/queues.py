"""`app.queues` and `app.limits`."""

from __future__ import annotations

from detent.app.registry import Registry, declared_as
from detent.client.actor import actor_and_reason
from detent.client.engine import Engine
from detent.client.job_verbs import unwrap
from detent.client.list_page import ListPage, check_limit, page_by_name
from detent.declare.limit import Limit
from detent.declare.task import check_seconds
from detent.errors import DetentError, InvalidInput, NotFound
from detent.model import json_codec
from detent.model.limit_records import LimitFilter, LimitRow
from detent.model.records import Moved
from detent.model.service_records import RecoveryRow
from detent.store.contract import Verbs
from detent.store.limits.contract import ALL_LIMITS
from detent.views.queues import Queue, queues

__all__ = ["Limits", "Queues"]

_STALE_AFTER = 300.0
_STALLED_AFTER = 600.0


class Queues:
    """The queues that have a job on record or are paused."""

    def __init__(self, engine: Engine, registry: Registry) -> None:
        self._engine = engine
        self._registry = registry

    def list(self, *, limit: int = 100, after: str | None = None) -> ListPage[Queue]:
        """List queues by name, with their jobs by state, and who paused them and why. `.next` of the list is the
        `after` of the next page."""
        return page_by_name(queues(self._engine.store), lambda queue: queue.name, after, limit)

    def get(self, name: str) -> Queue:
        """Return the queue of that name. `NotFound`."""
        checked = self._checked(name)
        for queue in queues(self._engine.store):
            if queue.name == checked:
                return queue
        raise NotFound("queue", checked)

    def pause(self, name: str, *, actor: str | None = None, reason: str | None = None) -> Moved:
        """Pause a queue: no job of it starts until it is resumed. Running jobs continue."""
        who = actor_and_reason(actor, reason, self._engine.settings)
        return self._engine.store.queue_pause(self._checked(name), *who)

    def resume(self, name: str, *, actor: str | None = None, reason: str | None = None) -> Moved:
        """Resume a queue: its jobs start again."""
        who = actor_and_reason(actor, reason, self._engine.settings)
        return self._engine.store.queue_resume(self._checked(name), *who)

    def limit(self, name: str, limit: Limit, *, actor: str | None = None, reason: str | None = None) -> LimitRow:
        """Write the limit of a queue now, and return it; `Limit()` lifts it. It stays until it is set again, or until a
        worker starts whose code declares a different limit than before. `InvalidInput`."""
        who = actor_and_reason(actor, reason, self._engine.settings)
        item = self._registry.queue_limit(name, limit)
        self._engine.store.limit_put(item, *who)
        (row,) = self._engine.store.limit_list(LimitFilter(keys=(item.key,)))
        return row

    def recovery(
        self,
        name: str,
        *,
        automatic: bool,
        stale_after: float | None = _STALE_AFTER,
        stalled_after: float | None = _STALLED_AFTER,
        actor: str | None = None,
        reason: str | None = None,
    ) -> Moved:
        """Choose what happens to silent jobs of a queue. If `automatic`, workers stop them and run them again; if not,
        they wait for a person, which is the default.

        A job is silent if it has not started `stale_after` seconds after its claim, or has started and wrote no event
        for `stalled_after` seconds; None is never. The attempt of a job that has started ends as timed out and counts.
        The options of a task take precedence. `InvalidInput`.
        """
        times = (stale_after, stalled_after) if automatic else (None, None)
        if automatic and times == (None, None):
            raise InvalidInput("stale_after", "neither stale_after nor stalled_after", "one of them, in seconds")
        for field, seconds in zip(("stale_after", "stalled_after"), times, strict=True):
            if seconds is not None:
                check_seconds(field, seconds)
        who = actor_and_reason(actor, reason, self._engine.settings)
        return self._engine.store.recovery_set(self._checked(name), *times, *who)

    def recoveries(self) -> ListPage[RecoveryRow]:
        """List the queues whose silent jobs are stopped and run again automatically."""
        return ListPage(self._engine.store.recovery_list())

    def _checked(self, name: str) -> str:
        return json_codec.text(name, field="queue", bytes_max=self._engine.settings.name_max)


class Limits:
    """The limits of tasks and queues."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def list(self, *, limit: int = 100, after: str | None = None) -> ListPage[LimitRow]:
        """List limits by key, with the number of running jobs, the tokens left, pause and breaker. `.next` of the list
        is the `after` of the next page."""
        most, place = check_limit(limit), self._checked(after) if after else ""
        found = self._engine.store.limit_list(ALL_LIMITS, place, most)
        return ListPage(found, found[-1].key if len(found) == most else None)

    def get(self, key: str) -> LimitRow:
        """Return the limit of that key. `NotFound`."""
        checked = self._checked(key)
        for row in self._engine.store.limit_list(LimitFilter(keys=(checked,))):
            return row
        raise NotFound("limit", checked)

    def pause(self, key: str, *, actor: str | None = None, reason: str | None = None) -> Moved:
        """Pause a limit: no job under it starts until it is resumed. Running jobs continue. A limit key of jobs, such
        as `shop:7`, is a limit too. `NotFound`."""
        who = actor_and_reason(actor, reason, self._engine.settings)
        return unwrap(self._engine.store.limit_pause(self._checked(key), *who))

    def resume(self, key: str, *, actor: str | None = None, reason: str | None = None) -> Moved:
        """Resume a limit: end any pause, close the breaker and fill the bucket. `NotFound`."""
        who = actor_and_reason(actor, reason, self._engine.settings)
        return unwrap(self._engine.store.limit_reset(self._checked(key), *who))

    def remove(self, key: str, *, actor: str | None = None, reason: str | None = None) -> Moved:
        """Remove a limit that no code declares any more. If the code still declares it, `detent migrate --app` and a
        worker that starts while no other worker runs write it again. `InUse` while jobs wait or run under it,
        `NotFound`."""
        who, checked = actor_and_reason(actor, reason, self._engine.settings), self._checked(key)

        def remove(verbs: Verbs) -> Moved | DetentError:
            rows = verbs.limit_list(LimitFilter(keys=(checked,)))
            members = [declared for row in rows for declared in declared_as(row)]
            removed = verbs.limit_remove(checked, *who)
            for name in members if isinstance(removed, Moved) else ():
                verbs.declaration_put("limit", name, "", again=True)
            return removed

        return unwrap(self._engine.store.together(remove))

    def _checked(self, key: str) -> str:
        return json_codec.text(key, field="key", bytes_max=self._engine.settings.name_max + len("queue:"))
