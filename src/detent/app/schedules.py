"""`app.schedules`: calls that are enqueued at the times of a cron expression."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from detent.app.registry import Registry
from detent.client.actor import actor_and_reason
from detent.client.engine import Engine
from detent.client.job import Job
from detent.client.job_verbs import unwrap
from detent.client.list_page import ListPage, page_by_name
from detent.declare.task import Call
from detent.errors import DetentError, InvalidInput, NotFound
from detent.model import json_codec
from detent.model.records import Moved
from detent.model.service_records import CatchUp, ScheduleRow
from detent.schedule.cron import next_tick
from detent.schedule.due_ticks import from_now, job_now, upcoming
from detent.store.contract import Verbs

__all__ = ["Schedules"]

_TICKS_MAX = 1000


class Schedules:
    """The schedules on record."""

    def __init__(self, engine: Engine, registry: Registry) -> None:
        self._engine = engine
        self._registry = registry

    def set(
        self,
        name: str,
        cron: str,
        call: Call[Any],
        *,
        zone: str = "UTC",
        catch_up: CatchUp = "latest",
        tenant: str = "",
        queue: str | None = None,
        priority: int | None = None,
        actor: str | None = None,
        reason: str | None = None,
    ) -> ScheduleRow:
        """Write a schedule now: create it, or change the one of that name. Options as for `app.schedule`. The next tick
        stays unless `cron` or `zone` changes, and a pause stays. `InvalidInput`."""
        who = actor_and_reason(actor, reason, self._engine.settings)
        item = self._registry.new_schedule(cron, call, zone, name, catch_up, tenant, queue, priority)
        store = self._engine.store
        return store.schedule_put(from_now(item, store.now()), *who)

    def list(self, *, limit: int = 100, after: str | None = None) -> ListPage[ScheduleRow]:
        """List schedules by name. `.next` of the list is the `after` of the next page."""
        return page_by_name(self._engine.store.schedule_list(), lambda row: row.name, after, limit)

    def get(self, name: str) -> ScheduleRow:
        """Return the schedule of that name. `NotFound`."""
        checked = self._checked(name)
        for row in self._engine.store.schedule_list():
            if row.name == checked:
                return row
        raise NotFound("schedule", checked)

    def pause(self, name: str, *, actor: str | None = None, reason: str | None = None) -> Moved:
        """Pause a schedule: it enqueues nothing until it is resumed. `NotFound`."""
        who = actor_and_reason(actor, reason, self._engine.settings)
        return unwrap(self._engine.store.schedule_pause(self._checked(name), *who))

    def resume(self, name: str, *, actor: str | None = None, reason: str | None = None) -> Moved:
        """Resume a schedule. Ticks during the pause are not made up for. `NotFound`."""
        who = actor_and_reason(actor, reason, self._engine.settings)
        row, store = self.get(name), self._engine.store
        return unwrap(store.schedule_resume(row.name, next_tick(row.cron, row.zone, store.now()), *who))

    def remove(self, name: str, *, actor: str | None = None, reason: str | None = None) -> Moved:
        """Remove a schedule. Jobs that it enqueued stay. If the code still declares it, `detent migrate --app` and a
        worker that starts while no other worker runs write it again; pause it instead. `NotFound`."""
        who, checked = actor_and_reason(actor, reason, self._engine.settings), self._checked(name)

        def remove(verbs: Verbs) -> Moved | DetentError:
            removed = verbs.schedule_remove(checked, *who)
            if isinstance(removed, Moved):
                verbs.declaration_put("schedule", checked, "", again=True)
            return removed

        return unwrap(self._engine.store.together(remove))

    def next(self, name: str, count: int = 5) -> ListPage[datetime]:
        """Return the next ticks of a schedule, in UTC. `NotFound`."""
        if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= _TICKS_MAX:
            raise InvalidInput("count", repr(count), f"a whole number from 1 to {_TICKS_MAX}")
        return ListPage(upcoming(self.get(name), count))

    def run_now(self, name: str, *, actor: str | None = None, reason: str | None = None) -> Job[Any]:
        """Enqueue the job of a schedule now. The next tick does not change, and a paused schedule can be run too.

        If the task is unique while pending and an equal job waits, return that job (`created` is False). `NotFound`.
        """
        engine = self._engine
        who, why = actor_and_reason(actor, reason, engine.settings)
        row = self.get(name)
        (number,) = engine.ids.take(1)
        item = job_now(row, number, engine.ids.nonce(), who)
        made = unwrap(engine.store.schedule_run(row.name, item, who, why))
        found = engine.client.get(made.job_id)
        found.created = made.created
        return found

    def left(self) -> ListPage[str]:
        """List the names of schedules for tasks of this application that its code once declared and no longer does."""
        return ListPage(self._registry.left_schedules())

    def origins(self) -> dict[str, str]:
        """Return where each schedule comes from: `code`, `hand`, or `left the code`."""
        store, left = self._engine.store, set(self.left())
        by_code = {row.name for row in store.declaration_list() if row.kind == "schedule"}
        return {
            row.name: "left the code" if row.name in left else "code" if row.name in by_code else "hand"
            for row in store.schedule_list()
        }

    def prune(self, *, actor: str | None = None, reason: str | None = None) -> ListPage[Moved]:
        """Remove the schedules that `left` names."""
        return ListPage(self.remove(name, actor=actor, reason=reason) for name in self.left())

    def _checked(self, name: str) -> str:
        return json_codec.text(name, field="name", bytes_max=self._engine.settings.name_max)
