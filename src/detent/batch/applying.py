"""Moving targets: the job that hands out an action's targets, the jobs that apply and revert one each, and the job that
stops a run."""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from detent.batch.context import InsideTarget
from detent.batch.ground import Ground, Runs
from detent.client.colour import Colour, colour_of
from detent.client.moves import one
from detent.declare.batch import Batch, same
from detent.declare.context import Context
from detent.declare.probe import Probed
from detent.declare.signals import Conflict, Critical, Fatal, Snooze
from detent.declare.task import Call, Task
from detent.errors import InvalidInput, TransitionRace
from detent.model import jsondoor
from detent.model.batch_records import BatchRunRow, Portion, TargetJob, TargetRow
from detent.model.records import NewJob
from detent.model.sanitize import message_text

__all__ = ["Applying", "Stepping", "Stopping"]

_PORTION = 500
_REASON_MAX = 500
_STOP_AGAIN = 1.0
"""Seconds after which a stopped run is looked at again, while targets that had begun are still in flight."""


class Stepping:
    """The function of `<batch>.step`."""

    def __init__(self, batch: Batch, ground: Ground, runs: Runs) -> None:
        self._batch = batch
        self._ground = ground
        self._runs = runs
        self.apply_task: Task[..., Any, Any]
        self.revert_task: Task[..., Any, Any] | None = None

    def step(self, ctx: Context, run: int, action: int) -> None:
        """Give every target of the action its job, a portion in one transaction; begun again, it goes on where the
        action stands."""
        store = self._ground.store()
        while True:
            row = self._runs.row(run)
            portion = one(store.batch_portion(action, _PORTION))
            if portion.action.done_at is not None:
                return
            jobs = self._jobs(row, portion)
            stepped = store.batch_step(
                (ctx.job_id, ctx.attempt), action, portion.action.cursor, portion.to_cursor, jobs, portion.last
            )
            if isinstance(stepped, TransitionRace):
                continue
            if one(stepped).done:
                return

    def _jobs(self, run: BatchRunRow, portion: Portion) -> list[TargetJob]:
        """New jobs for those that have none; what is retried keeps the one it has."""
        if portion.action.action == "retry_failed":
            return []
        reverts = portion.action.action == "roll_back"
        task = self.revert_task if reverts else self.apply_task
        if task is None:
            raise Fatal(f"batch {self._batch.name!r} has no revert any more")
        needing = [target for target in portion.targets if not reverts or target.revert_job_id is None]
        jobs = self._ground.jobs([Call(task, _payload(run.id, target)) for target in needing], run)
        options = self._batch.options
        if callable(options.limit_key) or options.cost is not None:
            value = self._runs.value(run.id)
            jobs = [self._under_limit(value, job, target.ref) for job, target in zip(jobs, needing, strict=True)]
        return [TargetJob(target.n, job) for target, job in zip(needing, jobs, strict=True)]

    def _under_limit(self, value: Any, job: NewJob, ref: str) -> NewJob:
        """The job with what the batch says of its limit. To ask again would not change that: `Fatal`."""
        try:
            return replace(job, limit_key=self._batch.limit_key_of(value, ref), cost=self._batch.cost_of(value, ref))
        except InvalidInput as error:
            raise Fatal(f"target {ref!r:.80}: {error}") from error


def _payload(run_id: int, target: TargetRow) -> str:
    """What `carry_out` takes, put together from what passed the door with the preview."""
    ref = msgspec.json.encode(target.ref).decode()
    return f'{{"run":{run_id},"ref":{ref},"before":{target.before},"after":{target.after}}}'


class Applying:
    """The function of `<batch>.apply`, or of `<batch>.revert`, and its probe."""

    def __init__(
        self,
        batch: Batch,
        ground: Ground,
        runs: Runs,
        stop: Task[..., Any, Any],
        action: Literal["apply", "revert"],
    ) -> None:
        self._batch = batch
        self._ground = ground
        self._runs = runs
        self._stop_task = stop
        self._action = action
        self.colour: Colour = colour_of(getattr(batch.kind, action), getattr(batch.kind, "observe", None))
        self.probe_colour: Colour = colour_of(getattr(batch.kind, "observe", None))

    async def carry_out(self, ctx: Context, run: int, ref: str, before: Any, after: Any) -> Any:
        """Call the batch's own method for one target, unless others have changed the target. A critical error stops
        the run."""
        value = self._runs.known(run) or await self.colour.ask(self._runs.value, run)
        inside = InsideTarget(ctx, run, ref, self._action)
        try:
            if self._batch.observes:
                await self._check(ctx, value, run, ref, before, after)
            return await self.colour.call(getattr(value, self._action), inside, ref, self._batch.change(before, after))
        except Critical as error:
            await self.colour.ask(self._stop, ctx, run, error)
            raise

    async def _check(self, ctx: Context, value: Any, run: int, ref: str, before: Any, after: Any) -> None:
        """Compare the target with what this run expects. What it is to become is right too: an earlier attempt may have
        made the change. `Conflict`."""
        row = await self.colour.ask(self._runs.row, run)
        if row.overwrite:
            return
        found = self._batch.encode_observed(ref, await self.colour.call(value.observe, ref))
        was, wanted = (_text(before), _text(after)) if self._action == "apply" else (_text(after), _text(before))
        if same(found, was) or same(found, wanted):
            return
        advice = "preview a new run" if self._action == "apply" else "look at what has changed it since"
        await self.colour.ask(self._ground.store().target_conflict, (ctx.job_id, ctx.attempt), run, found)
        raise Conflict(ref, found, was, f"{advice}, or repeat the action with overwrite")

    def _stop(self, ctx: Context, run: int, error: Critical) -> None:
        reason = message_text(f"{error}" or type(error).__name__, bytes_max=_REASON_MAX)
        driver = self._ground.job(self._stop_task.call(run=run), self._runs.row(run))
        one(self._ground.store().batch_stop((ctx.job_id, ctx.attempt), run, reason, driver))

    async def probe(self, ctx: Context, run: int, ref: str, before: Any, after: Any) -> Probed:
        """Whether it has happened, by what the target is now: as it was to become, or as it was. Anything else is for a
        person to say."""
        value = await self.probe_colour.ask(self._runs.value, run)
        found = self._batch.encode_observed(ref, await self.probe_colour.call(value.observe, ref))
        was, wanted = (before, after) if self._action == "apply" else (after, before)
        if same(found, _text(wanted)):
            return Probed.done()
        if same(found, _text(was)):
            return Probed.not_done()
        return Probed.cannot_tell(f"{ref!r:.80} is now {found:.200}, neither as before nor as after")


class Stopping:
    """The function of `<batch>.stop`."""

    def __init__(self, ground: Ground, runs: Runs) -> None:
        self._ground = ground
        self._runs = runs

    def stop(self, ctx: Context, run: int) -> None:
        """Cancel the jobs of a stopped run that have not begun, a portion at a time, and those that come back to the
        queue while others are in flight. A run that was retried since is left alone."""
        row = self._runs.row(run)
        if row.critical is None:
            return
        rolling_back = row.rollback_requested_at is not None
        reason = f"run {run} was stopped: {row.critical}"
        store, after_n = self._ground.store(), 0
        while page := store.target_list(
            run, state="applied" if rolling_back else "queued", after_n=after_n, limit=_PORTION
        ):
            after_n = page[-1].n
            ids = [target.revert_job_id if rolling_back else target.apply_job_id for target in page]
            jobs = store.job_get([job_id for job_id in ids if job_id is not None])
            if waiting := [job.id for job in jobs if job is not None and job.state == "pending"]:
                store.job_cancel(waiting, "system", reason)
        row = self._runs.row(run)
        if row.critical is not None and row.queued + row.applying + row.reverting:
            raise Snooze(_STOP_AGAIN)


def _text(value: object) -> str:
    return jsondoor.encode(value, field="change", size_max=2**31)
