"""The part of `Detent` that is around the jobs: schedules, workers, operations."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from detent.app.wiring import Wiring
from detent.client.client import actor_and_reason, check_id, one
from detent.client.figures import figures_since
from detent.client.job import Job
from detent.client.operation import Operation, Operations
from detent.client.search import RecordLines, check_limit, place_of
from detent.declare.enqueue import Sending, new_job
from detent.declare.settings import Settings
from detent.declare.task import Call, check_seconds
from detent.errors import DetentError, InvalidInput, NotFound, WrongPlace
from detent.model import jsondoor
from detent.model.clock import to_micros
from detent.model.figure_records import Figures
from detent.model.records import Moved, RecordPlace
from detent.model.service_records import (
    CATCH_UP,
    CatchUp,
    DeadGroup,
    IdentityRow,
    NewSchedule,
    RecoveryRow,
    ScheduleRow,
    SilentRow,
    WorkerRow,
)
from detent.schedule.cron import check_cron, next_tick
from detent.schedule.firing import NEVER, from_now, job_now, upcoming
from detent.store.contract import Verbs
from detent.store.words import RecordSearch

__all__ = ["Keeping"]

_ALIVE_WITHIN = 10.0
_GONE_AFTER = 60.0
_TICKS_MAX = 1000
_GROUPS_MAX = 10_000
_STALE_AFTER = 300.0
_STALLED_AFTER = 600.0


class Keeping:
    """Schedules, workers, operations."""

    settings: Settings
    _wiring: Wiring
    _schedules: dict[str, NewSchedule]

    def schedule(
        self,
        cron: str,
        call: Call[Any],
        *,
        zone: str = "UTC",
        name: str | None = None,
        catch_up: CatchUp = "latest",
        tenant: str = "",
        queue: str | None = None,
        priority: int | None = None,
    ) -> str:
        """Declare a schedule: enqueue a call at the times of a cron expression (five fields) in a time zone. Return its
        name, which is the task's name if none is given.

        Nothing is written here. A worker writes the declaration when it starts, and so does `detent migrate --app`. It
        is written only if it differs from what code declared before, so a pause and a change by `set_schedule` stay
        until the declaration changes. Two different schedules of one name are refused. `InvalidInput`.

        Missed ticks: `latest` enqueues one job for the most recent tick, `all` one for each, `skip` none for ticks that
        are more than a minute late. The jobs have the options of their task; if the task is unique while pending, a
        tick enqueues nothing while an equal job waits.
        """
        item = self._new_schedule(cron, call, zone, name, catch_up, tenant, queue, priority)
        if self._schedules.setdefault(item.name, item) != item:
            raise InvalidInput("name", f"two schedules declared as {item.name!r}", "a name of its own for each")
        return item.name

    def set_schedule(
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
    ) -> ScheduleRow:
        """Write a schedule now: create it, or change the one of that name. Options as for `schedule`. Its next tick
        stays unless cron or zone change, and a pause stays. `InvalidInput`."""
        item = self._new_schedule(cron, call, zone, name, catch_up, tenant, queue, priority)
        store = self._wiring.store
        return store.schedule_put(from_now(item, store.now()))

    def _new_schedule(
        self,
        cron: str,
        call: Call[Any],
        zone: str,
        name: str | None,
        catch_up: CatchUp,
        tenant: str,
        queue: str | None,
        priority: int | None,
    ) -> NewSchedule:
        """The schedule without its first tick, which only the database's clock can tell."""
        if catch_up not in CATCH_UP:
            raise InvalidInput("catch_up", repr(catch_up)[:80], ", ".join(CATCH_UP))
        check_cron(cron, zone)
        job = new_job(call, Sending(tenant=tenant, queue=queue, priority=priority), settings=self.settings)
        if call.task.options.unique == "active":
            allowed = "unique='pending', together with limit=Limit(concurrency=1) if one at a time may run"
            raise InvalidInput("schedule", f"a call of {call.task.name}, which is unique while active", allowed)
        return NewSchedule(
            name=self._schedule_name(call.task.name if name is None else name),
            cron=cron,
            zone=zone,
            catch_up=catch_up,
            task=job.task,
            payload=job.payload,
            queue=job.queue,
            attempts_max=job.attempts_max,
            next_at=NEVER,
            tenant=job.tenant,
            priority=job.priority,
            dead_letter=job.dead_letter,
            idempotent=job.idempotent,
            unique_pending=job.unique_pending,
            limit_key=job.limit_key,
            cost=job.cost,
        )

    def unschedule(self, name: str, *, actor: str, reason: str | None = None) -> Moved:
        """Remove a schedule; jobs that it enqueued stay. If the code still declares it, `detent migrate --app` and a
        worker that starts while no other worker runs write it again: pause it instead. `NotFound`."""
        who, checked = actor_and_reason(actor, reason, self.settings), self._schedule_name(name)

        def remove(verbs: Verbs) -> Moved | DetentError:
            removed = verbs.schedule_remove(checked, *who)
            if isinstance(removed, Moved):
                verbs.declaration_put("schedule", checked, "", again=True)
            return removed

        return one(self._wiring.store.together(remove))

    def pause_schedule(self, name: str, *, actor: str, reason: str | None = None) -> Moved:
        """Let no tick come until it is resumed. `NotFound`."""
        who = actor_and_reason(actor, reason, self.settings)
        return one(self._wiring.store.schedule_pause(self._schedule_name(name), *who))

    def resume_schedule(self, name: str, *, actor: str, reason: str | None = None) -> Moved:
        """Let ticks come again; those of the pause are not made up for. `NotFound`."""
        who = actor_and_reason(actor, reason, self.settings)
        row = self._schedule(name)
        store = self._wiring.store
        return one(store.schedule_resume(row.name, next_tick(row.cron, row.zone, store.now()), *who))

    def run_schedule(self, name: str, *, actor: str, reason: str | None = None) -> Job[Any]:
        """Enqueue the job of a schedule now, on record. Its next tick stays where it is, and a pause does not hinder.

        If the task is unique while pending and an equal job waits, return that one (`created` is False). `NotFound`.
        """
        who, why = actor_and_reason(actor, reason, self.settings)
        row, wiring = self._schedule(name), self._wiring
        (number,) = wiring.ids.take(1)
        item = job_now(row, number, wiring.ids.nonce(), who)
        made = one(wiring.store.schedule_run(row.name, item, who, why))
        found = wiring.client.get(made.job_id)
        found.created = made.created
        return found

    def schedules(self) -> list[ScheduleRow]:
        """Every schedule, by name."""
        return self._wiring.store.schedule_list()

    def next_ticks(self, name: str, count: int = 5) -> list[datetime]:
        """The coming ticks of a schedule, in UTC. `NotFound`."""
        if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= _TICKS_MAX:
            raise InvalidInput("count", repr(count), f"a whole number from 1 to {_TICKS_MAX}")
        return upcoming(self._schedule(name), count)

    def workers(self, *, within: float = _ALIVE_WITHIN) -> list[WorkerRow]:
        """The workers seen in the last `within` seconds, with what they know and hold."""
        if isinstance(within, bool) or not isinstance(within, int | float) or not 0 <= within <= 10**9:
            raise InvalidInput("within", repr(within), "a number of seconds")
        return self._wiring.store.worker_list(within)

    def operations(self, *, state: str | None = None, limit: int = 100) -> list[Operation]:
        """What was done, or is being done, to many jobs at once; the newest first."""
        if state not in (None, "running", "done", "cancelled"):
            raise InvalidInput("state", repr(state)[:80], "running, done, cancelled")
        return self._operations.list(state, limit)

    def operation(self, operation_id: int | str) -> Operation:
        """One of them. `NotFound`."""
        return self._operations.get(check_id(operation_id))

    def dead_report(
        self, *, task: str | None = None, queue: str | None = None, tenant: str | None = None, limit: int = 100
    ) -> list[DeadGroup]:
        """What the dead jobs died of: how many of one task and queue for the same reason and of the same kind of
        error, since when, after how many attempts, and one of them to look at. The largest groups first."""
        if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= _GROUPS_MAX:
            raise InvalidInput("limit", repr(limit), f"a whole number from 1 to {_GROUPS_MAX}")
        for field, name in (("task", task), ("queue", queue), ("tenant", tenant)):
            if name is not None:
                jsondoor.text(name, field=field, bytes_max=self.settings.name_max, allow_empty=True)
        return self._wiring.store.dead_report(task, queue, tenant, limit)

    def silent(
        self,
        *,
        queue: str | None = None,
        stale_after: float = _STALE_AFTER,
        stalled_after: float = _STALLED_AFTER,
        limit: int = 100,
    ) -> list[SilentRow]:
        """List jobs in flight that are silent, the longest silent first. A job is `stale` if it has not begun
        `stale_after` seconds after its claim, and `stalled` if it has begun and wrote no event for `stalled_after`
        seconds. The options of its task take precedence. To give up such a job, cancel it."""
        for field, seconds in (("stale_after", stale_after), ("stalled_after", stalled_after)):
            check_seconds(field, seconds)
        if queue is not None:
            jsondoor.text(queue, field="queue", bytes_max=self.settings.name_max)
        return self._wiring.store.job_silent(queue, stale_after, stalled_after, limit)

    def recover_automatically(
        self,
        queue: str,
        *,
        actor: str,
        reason: str | None = None,
        stale_after: float | None = _STALE_AFTER,
        stalled_after: float | None = _STALLED_AFTER,
    ) -> Moved:
        """Let workers stop silent jobs of a queue and run them again, without asking; None is never.

        A job that is at work and writes no event for `stalled_after` seconds counts as stalled too: its attempt ends
        as timed out and is used up. What a task says of itself goes before.
        """
        if stale_after is None and stalled_after is None:
            raise InvalidInput("stale_after", "neither stale_after nor stalled_after", "one of them, in seconds")
        for field, seconds in (("stale_after", stale_after), ("stalled_after", stalled_after)):
            if seconds is not None:
                check_seconds(field, seconds)
        return self._set_recovery(queue, stale_after, stalled_after, actor, reason)

    def recover_by_approval(self, queue: str, *, actor: str, reason: str | None = None) -> Moved:
        """Leave silent jobs of a queue to a person, as it is from the beginning."""
        return self._set_recovery(queue, None, None, actor, reason)

    def _set_recovery(
        self, queue: str, stale_after: float | None, stalled_after: float | None, actor: str, reason: str | None
    ) -> Moved:
        who = actor_and_reason(actor, reason, self.settings)
        name = jsondoor.text(queue, field="queue", bytes_max=self.settings.name_max)
        return self._wiring.store.recovery_set(name, stale_after, stalled_after, *who)

    def recoveries(self) -> list[RecoveryRow]:
        """The queues whose silent jobs are stopped and run again without asking."""
        return self._wiring.store.recovery_list()

    def search_record(
        self,
        *,
        actor: str | None = None,
        entity: str | None = None,
        entity_id: object = None,
        since: datetime | None = None,
        until: datetime | None = None,
        after: str | None = None,
        limit: int = 100,
    ) -> RecordLines:
        """List the changes that people and programs requested, the newest first: who, when, what and why.

        `entity` is what was changed: job, queue, schedule, limit, batch_run, pipeline_run, operation, alert, or the
        name of a lifecycle of yours; `entity_id` is which one. `.next` of the list is the `after` of the next page,
        None at the end. The ordinary steps of attempts (claim, start, commit, finish) are not among them:
        `transitions` has those.
        """
        for field, text in (("actor", actor), ("entity", entity)):
            if text is not None:
                jsondoor.text(text, field=field, bytes_max=self.settings.name_max)
        if entity_id is not None and entity is None:
            raise InvalidInput(
                "entity_id", "an entity_id without its entity", "both, such as entity='job', entity_id=17"
            )
        for field, at in (("since", since), ("until", until)):
            if at is not None:
                to_micros(at, field=field)
        chosen = RecordSearch(actor, entity, None if entity_id is None else str(entity_id), since, until)
        place = place_of(after)
        found = self._wiring.store.record_search(
            chosen, None if place is None else RecordPlace(place.created_at, place.id), check_limit(limit)
        )
        return RecordLines(found.rows, found.next)

    def figures(self, *, since: datetime | None = None, task: str | None = None) -> Figures:
        """Return figures of the last 24 hours, or since another time within the last 31 days; of one task, or of all.

        Success rates and retries by task, durations by task and outcome, transitions by task, batch runs and ops runs.
        Attempts are counted when they end, from the beginning of the hour of `since`. Counts, means and maxima are
        exact; a percentile is off by less than a quarter. `InvalidInput`.
        """
        return figures_since(self._wiring.store, since, task, self.settings)

    @property
    def identity(self) -> str:
        """What tells this database from every other: a random text, part of the effect keys of new jobs."""
        return self._wiring.store.identity_list()[-1].identity

    def identities(self) -> list[IdentityRow]:
        """Every identity this database has had, oldest first."""
        return self._wiring.store.identity_list()

    def renew_identity(self, *, actor: str, reason: str | None = None) -> str:
        """Give this database a new identity, after it was restored from a backup or copied. Return the identity.

        Jobs that exist keep their effect keys, so that an effect which is repeated is recognised; new jobs get keys
        that no other copy of the database gives. A worker reads the identities when it starts, so this is refused with
        `WrongPlace` if a worker was seen in the last minute.
        """
        who, why = actor_and_reason(actor, reason, self.settings)
        store = self._wiring.store
        if alive := store.worker_list(_GONE_AFTER):
            names = ", ".join(sorted({worker.name for worker in alive})[:5])
            found = f"{len(alive)} workers were seen in the last minute ({names})"
            raise WrongPlace("renew_identity()", found, "stop the workers first, and try again after a minute")
        return store.identity_renew(who, why).identity

    @property
    def _operations(self) -> Operations:
        wiring = self._wiring
        return Operations(lambda: wiring.store, wiring.ids, wiring.prepared.clock, self.settings)

    def _schedule(self, name: str) -> ScheduleRow:
        checked = self._schedule_name(name)
        for row in self.schedules():
            if row.name == checked:
                return row
        raise NotFound("schedule", checked)

    def _schedule_name(self, name: str) -> str:
        return jsondoor.text(name, field="name", bytes_max=self.settings.name_max)
