"""The twin's machine goes on: what is done around the jobs, and limits."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from hypothesis import strategies as st

from detent.model.clock import from_micros
from detent.model.limit_records import Charge, LimitFilter, NewLimit
from detent.model.records import Abort, NewJob
from detent.model.service_records import Fire, NewOperation, NewSchedule, TaskTimes, WorkerSeen
from detent.model.workflow_records import NewStep
from detent.store.jobs.filters import JobFilter
from tests.twin import strategies as some
from tests.twin.machine import JOBS_MAX, NO_SUCH_ID, Twin, action


class WholeTwin(Twin):
    """Every verb there is."""

    # -- workers and services ----------------------------------------------------------------------------------

    @action(seen=some.workers)
    def worker_lives(self, seen: dict[str, Any]) -> None:
        self.everywhere("worker_seen", WorkerSeen(**seen))

    @action(worker_id=some.worker_ids)
    def worker_ends(self, worker_id: int) -> None:
        self.everywhere("worker_gone", worker_id)

    @action(name=st.sampled_from(some.SERVICES), holder=some.worker_ids, drop=st.booleans())
    def service(self, name: str, holder: int, drop: bool) -> None:
        if drop:
            self.everywhere("service_drop", name, holder)
        else:
            self.everywhere("service_take", name, holder, 5.0)

    # -- workflows ---------------------------------------------------------------------------------------------

    @action(held=True, wishes=st.lists(some.recorded_steps, min_size=1, max_size=3))
    def record_steps(self, wishes: list[dict[str, Any]]) -> None:
        """A job that has recorded a step is a workflow, and keeps its version."""
        items = []
        for n, wish in enumerate(wishes):
            words = dict(wish)
            job_id, attempt = self.attempt_of(words.pop("ref"))
            items.append(NewStep(job_id=job_id, attempt=attempt, generation=1, seq=n, **words))
        self.everywhere("step_record", items)

    # -- what is declared in code ------------------------------------------------------------------------------

    @action(
        kind=st.sampled_from(("schedule", "limit")),
        name=st.sampled_from(some.SCHEDULES),
        fingerprint=st.sampled_from(("", "a", "b", "c")),
        again=st.booleans(),
    )
    def declare(self, kind: str, name: str, fingerprint: str, again: bool) -> None:
        self.everywhere("declaration_put", kind, name, fingerprint, again)

    # -- schedules ---------------------------------------------------------------------------------------------

    @action(wish=some.schedules, seconds=st.sampled_from((0.0, 5.0)))
    def schedule_put(self, wish: dict[str, Any], seconds: float) -> None:
        next_at = from_micros(self.model.clock) + timedelta(seconds=seconds)
        self.everywhere("schedule_put", NewSchedule(**wish, next_at=next_at))

    @action(name=st.sampled_from(some.SCHEDULES), ticks=st.integers(0, 3), skips=st.booleans(), on_time=some.fatal)
    def schedule_fire(self, name: str, ticks: int, skips: bool, on_time: bool) -> None:
        """Ticks a second apart from where it stands; now and then by somebody who saw it stand elsewhere, or again."""
        row = self.model.schedule.get(name)
        stands = from_micros(row.next_at if row else self.model.clock)
        fires = []
        for n in range(ticks):
            skip = skips or len(self.model.job) + n >= JOBS_MAX
            job = None if skip else NewJob(id=self.take_id(), task="mail", payload="{}", nonce=1, fingerprint="mail {}")
            fires.append(Fire(stands + timedelta(seconds=n), job))
        expected = stands - timedelta(seconds=on_time)
        self.everywhere("schedule_fire", name, expected, fires, stands + timedelta(seconds=max(0, ticks - 1)))

    @action(
        verb=st.sampled_from(("schedule_pause", "schedule_resume", "schedule_remove")),
        name=st.sampled_from(some.SCHEDULES),
        actor=some.actors,
        reason=some.reasons,
    )
    def schedule_move(self, verb: str, name: str, actor: str, reason: str | None) -> None:
        next_at = [from_micros(self.model.clock) + timedelta(seconds=5)] if verb == "schedule_resume" else []
        self.everywhere(verb, name, *next_at, actor, reason)

    @action(name=st.sampled_from(some.SCHEDULES), actor=some.actors, reason=some.reasons)
    def schedule_run(self, name: str, actor: str, reason: str | None) -> None:
        if len(self.model.job) < JOBS_MAX:
            job = NewJob(id=self.take_id(), task="mail", payload="{}", nonce=1, fingerprint="mail {}")
            self.everywhere("schedule_run", name, job, actor, reason)

    # -- many jobs at once -------------------------------------------------------------------------------------

    @action(
        places=st.lists(some.places, min_size=1, max_size=3),
        queue=st.sampled_from((None, *some.QUEUES)),
        priority=st.sampled_from((None, 0, 7)),
        actor=some.actors,
        reason=some.reasons,
    )
    def job_move(self, places: list[int], **to: Any) -> None:
        self.everywhere("job_move", [self.id_of(place) for place in places], **to)

    @action(wish=some.operations, limit=some.limits, steps=st.integers(0, 3), again=st.booleans())
    def operation(self, wish: dict[str, Any], limit: int, steps: int, again: bool) -> None:
        """Begun, perhaps twice, and carried on for some steps; the next one goes on where it is, or stops it."""
        number = self.take_id()
        for _ in range(1 + again):
            self.everywhere("operation_start", NewOperation(id=number, **wish))
        for _ in range(steps):
            self.everywhere("operation_step", number, limit)

    @action(newest=st.integers(0, 2), stop=st.booleans(), limit=some.limits, reason=some.reasons)
    def operation_goes_on(self, newest: int, stop: bool, limit: int, reason: str | None) -> None:
        ids = sorted(self.model.operation, reverse=True)
        number = ids[newest] if newest < len(ids) else NO_SUCH_ID
        if stop:
            self.everywhere("operation_cancel", number, "ana", reason)
        else:
            self.everywhere("operation_step", number, limit)

    @action(
        queue=st.sampled_from(some.QUEUES),
        stale_after=st.sampled_from((None, 300.0)),
        stalled_after=st.sampled_from((None, 600.0)),
        reason=some.reasons,
    )
    def recovery(self, queue: str, stale_after: float | None, stalled_after: float | None, reason: str | None) -> None:
        self.everywhere("recovery_set", queue, stale_after, stalled_after, "ana", reason)

    @action(
        task=st.sampled_from(some.TASKS),
        stale_after=st.sampled_from((None, 1.0, 20.0)),
        stalled_after=st.sampled_from((None, 1.0)),
        result_ttl=st.sampled_from((None, 0.5, 2.0)),
        after=st.sampled_from((0, 3)),
        limit=some.limits,
    )
    def times(self, after: int, limit: int, **said: Any) -> None:
        self.everywhere("task_times_put", [TaskTimes(**said)])
        self.everywhere("result_drop", self.place_of(after), limit)

    # -- limits ------------------------------------------------------------------------------------------------

    @action(wish=some.new_limits)
    def limit_put(self, wish: dict[str, Any]) -> None:
        self.everywhere("limit_put", NewLimit(**wish))

    @action(wish=some.new_limits, worker=st.sampled_from(some.WORKERS), after_tenant=some.turns, limit=some.limits)
    def claim_under_a_limit(self, wish: dict[str, Any], worker: str, after_tenant: str | None, limit: int) -> None:
        """Jobs of both tasks side by side, and one of the tasks may soon begin no more."""
        self.everywhere("limit_put", NewLimit(**wish | {"tasks": some.TASKS[:1], "queues": ()}))
        self.everywhere("job_promote", 100)
        self.claim(
            worker=worker,
            limit=limit,
            lease=30.0,
            tasks=some.TASKS,
            queues=None,
            tenants=None,
            after_tenant=after_tenant,
        )

    @action(
        held=True,
        wishes=st.lists(st.tuples(some.refs, st.sampled_from((0.0, 0.5, 1.0, 4.0))), min_size=1, max_size=3),
        wish=some.new_limits,
    )
    def charge(self, wishes: list[tuple[tuple[int, int], float]], wish: dict[str, Any]) -> None:
        """What attempts have cost is more or less than what was taken for them."""
        self.everywhere("limit_put", NewLimit(**wish | {"tasks": some.TASKS, "queues": ()}))
        attempts = self.attempts_of([ref for ref, _ in wishes])
        charges = [Charge(*attempt, cost) for attempt, (_, cost) in zip(attempts, wishes, strict=True)]
        self.everywhere("limit_charge", charges)

    @action(held=True, times=st.integers(1, 7), delay=st.sampled_from((0.0, 2.0)), wish=some.new_limits)
    def the_other_side_says_no(self, times: int, delay: float, wish: dict[str, Any]) -> None:
        """Again and again, until the breaker opens."""
        self.everywhere("limit_put", NewLimit(**wish | {"tasks": some.TASKS, "queues": (), "rate": None}))
        for _ in range(times):
            self.time_passes(delay)
            self.claim_everything("w1", 30.0)
            held = [(job.id, job.attempt) for job in self.model.job.values() if job.state == "running"]
            if not held:
                return
            ends = [Abort(job_id=n, attempt=attempt, outcome="throttled", delay=delay) for n, attempt in held]
            self.everywhere("job_abort", ends, "w1")

    @action(
        verb=st.sampled_from(("limit_reset", "limit_reset", "limit_pause", "limit_remove")),
        key=st.sampled_from((*some.LIMITS, *some.KEYS_OF_LIMITS, "unknown")),
        actor=some.actors,
        reason=some.reasons,
    )
    def limit_move(self, verb: str, key: str, actor: str, reason: str | None) -> None:
        self.everywhere(verb, key, actor, reason)

    # -- failures ----------------------------------------------------------------------------------------------

    @action(
        limit=some.limits,
        seconds=st.sampled_from((1.0, 60.0)),
        then=st.sampled_from((None, "failure_report_keep", "failure_report_done")),
    )
    def tell_failures(self, limit: int, seconds: float, then: str | None) -> None:
        """Of the failures that are taken, some are told to the end."""
        taken = self.everywhere("failure_report_take", some.TASKS, limit, seconds)
        if then and taken:
            self.everywhere(then, taken, *((2 * seconds,) if then == "failure_report_keep" else ()))

    # -- looking -----------------------------------------------------------------------------------------------

    @action(within=st.sampled_from((1.0, 60.0)), seconds=st.sampled_from((None, 1.0, 20.0)), limit=some.limits)
    def look_around(self, within: float, seconds: float | None, limit: int) -> None:
        """Every question about what is around the jobs is answered alike."""
        self.looked_at("worker_list", within)
        self.looked_at("schedule_list")
        self.looked_at("schedule_due", limit)
        self.looked_at("operation_list", None, limit)
        self.looked_at("recovery_list")
        self.looked_at("task_times_list")
        self.looked_at("job_prunable", from_micros(self.model.clock), None, limit, ("succeeded", "cancelled"))
        self.looked_at("limit_list")
        self.looked_at("limit_list", LimitFilter(keys=("shop",), tasks=("mail",), queues=("slow",)), "", limit)
        self.looked_at("limit_refill", None, some.TASKS)
        self.looked_at("limit_refill", ("slow",), ("mail",))
        self.looked_at("queue_list")
        self.looked_at("dead_report", None, None, None, limit)
        self.looked_at("job_silent", None, seconds, seconds, limit)
        self.looked_at("job_silent", None, seconds, seconds, limit, self.leases[:2])
        for chosen in (JobFilter(), JobFilter(state="running", task="mail"), JobFilter(tenant="a", queue="slow")):
            self.looked_at("job_count", chosen)
