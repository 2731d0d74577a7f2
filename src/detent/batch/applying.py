"""Moving targets: the job that hands out an action's targets, and the jobs that apply and revert one each."""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from detent.batch.context import InsideTarget
from detent.batch.ground import Ground, Runs
from detent.client.client import one
from detent.client.colour import Colour, colour_of
from detent.declare.batch import Batch, same
from detent.declare.context import Context
from detent.declare.probe import Probed
from detent.declare.signals import Fatal
from detent.declare.task import Call, Task
from detent.errors import InvalidInput, TransitionRace
from detent.model import jsondoor
from detent.model.batch_records import BatchRunRow, Portion, TargetJob, TargetRow
from detent.model.records import NewJob

__all__ = ["Applying", "Stepping"]

_PORTION = 500


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

    def __init__(self, batch: Batch, runs: Runs, action: Literal["apply", "revert"]) -> None:
        self._batch = batch
        self._runs = runs
        self._action = action
        self.colour: Colour = colour_of(getattr(batch.kind, action))
        self.probe_colour: Colour = colour_of(getattr(batch.kind, "observe", None))

    async def carry_out(self, ctx: Context, run: int, ref: str, before: Any, after: Any) -> Any:
        """Call the batch's own method for one target."""
        value = self._runs.known(run) or await self.colour.ask(self._runs.value, run)
        inside = InsideTarget(ctx, run, ref, self._action)
        return await self.colour.call(getattr(value, self._action), inside, ref, self._batch.change(before, after))

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


def _text(value: object) -> str:
    return jsondoor.encode(value, field="change", size_max=2**31)
