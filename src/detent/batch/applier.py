"""The jobs that change targets: one that starts the jobs of an action, and one per target that applies or reverts
it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import msgspec
from msgspec.structs import replace

from detent.batch.run_jobs import RunCache, new_run_job, new_run_jobs
from detent.client.engine import EngineRef
from detent.client.job_verbs import unwrap
from detent.client.method_caller import Caller, caller_for
from detent.declare.batch import Batch, same
from detent.declare.context import Context
from detent.declare.probe import Probed
from detent.declare.signals import Conflict, Critical, Fatal
from detent.declare.task import Call, Task
from detent.errors import InvalidInput, TransitionRace
from detent.model import json_codec
from detent.model.batch_records import ActionPortion, BatchRunRow, TargetJob, TargetRow
from detent.model.records import NewJob
from detent.model.stored_text import message_text

__all__ = ["Applier", "Stepper"]

_PORTION = 500
_REASON_MAX = 500


class Stepper:
    """The function of `<batch>.step`."""

    def __init__(self, batch: Batch, engine: EngineRef, runs: RunCache) -> None:
        self._batch = batch
        self._engine = engine
        self._runs = runs
        self.apply_task: Task[..., Any, Any]
        self.revert_task: Task[..., Any, Any] | None = None

    def step(self, ctx: Context, run: int, action: int) -> None:
        """Create the job of every target of the action, a portion per transaction. A repeated attempt goes on after
        the last portion."""
        store = self._engine.store()
        while True:
            row = self._runs.row(run)
            portion = unwrap(store.batch_portion(action, _PORTION))
            if portion.action.done_at is not None:
                return
            jobs = self._jobs(row, portion)
            stepped = store.batch_step(
                (ctx.job_id, ctx.attempt), action, portion.action.cursor, portion.to_cursor, jobs, portion.last
            )
            if isinstance(stepped, TransitionRace):
                continue
            if unwrap(stepped).done:
                return

    def _jobs(self, run: BatchRunRow, portion: ActionPortion) -> list[TargetJob]:
        """Return new jobs for the targets that have none. A retried target keeps its job."""
        if portion.action.action == "retry_failed":
            return []
        reverts = portion.action.action == "roll_back"
        task = self.revert_task if reverts else self.apply_task
        if task is None:
            raise Fatal(
                f"Batch {self._batch.name!r} has no method revert any more. Deploy code that has it, and retry."
            )
        needing = [target for target in portion.targets if not reverts or target.revert_job_id is None]
        jobs = new_run_jobs(self._engine, [Call(task, _payload(run.id, target)) for target in needing], run)
        options = self._batch.options
        if callable(options.limit_key) or options.cost is not None:
            value = self._runs.value(run.id)
            jobs = [self._under_limit(value, job, target.ref) for job, target in zip(jobs, needing, strict=True)]
        return [TargetJob(target.n, job) for target, job in zip(needing, jobs, strict=True)]

    def _under_limit(self, value: Any, job: NewJob, ref: str) -> NewJob:
        """Return the job with its limit key and cost. `Fatal` if the batch gives no valid one: a retry would not
        help."""
        try:
            return replace(job, limit_key=self._batch.limit_key_of(value, ref), cost=self._batch.cost_of(value, ref))
        except InvalidInput as error:
            raise Fatal(f"target {ref!r:.80}: {error}") from error


def _payload(run_id: int, target: TargetRow) -> str:
    """Return the arguments of `carry_out` as JSON. Before and after were checked when the preview was stored."""
    ref = msgspec.json.encode(target.ref).decode()
    return f'{{"run":{run_id},"ref":{ref},"before":{target.before},"after":{target.after}}}'


class Applier:
    """The function of `<batch>.apply`, or of `<batch>.revert`, and its probe."""

    def __init__(
        self,
        batch: Batch,
        engine: EngineRef,
        runs: RunCache,
        stop: Task[..., Any, Any],
        action: Literal["apply", "revert"],
    ) -> None:
        self._batch = batch
        self._engine = engine
        self._runs = runs
        self._stop_task = stop
        self._action = action
        self.caller: Caller = caller_for(getattr(batch.kind, action), getattr(batch.kind, "observe", None))
        self.probe_caller: Caller = caller_for(getattr(batch.kind, "observe", None))

    async def carry_out(self, ctx: Context, run: int, ref: str, before: Any, after: Any) -> Any:
        """Call the batch's method for one target, unless the target was changed by others. A critical error stops the
        run."""
        value = self._runs.known(run) or await self.caller.query(self._runs.value, run)
        inside = _TargetAttempt(ctx, run, ref, self._action)
        try:
            if self._batch.observes:
                await self._check(ctx, value, run, ref, before, after)
            return await self.caller.call(getattr(value, self._action), inside, ref, self._batch.change(before, after))
        except Critical as error:
            await self.caller.query(self._stop, ctx, run, error)
            raise

    async def _check(self, ctx: Context, value: Any, run: int, ref: str, before: Any, after: Any) -> None:
        """Compare the target with the value that this run expects. The new value is accepted too, since an earlier
        attempt may have made the change. `Conflict`."""
        row = await self.caller.query(self._runs.row, run)
        if row.overwrite:
            return
        found = self._batch.encode_observed(ref, await self.caller.call(value.observe, ref))
        was, wanted = (_text(before), _text(after)) if self._action == "apply" else (_text(after), _text(before))
        if same(found, was) or same(found, wanted):
            return
        advice = "Preview a new run" if self._action == "apply" else "Check what has changed it since"
        await self.caller.query(self._engine.store().target_conflict, (ctx.job_id, ctx.attempt), run, found)
        raise Conflict(ref, found, was, f"{advice}, or repeat the action with overwrite.")

    def _stop(self, ctx: Context, run: int, error: Critical) -> None:
        reason = message_text(f"{error}" or type(error).__name__, bytes_max=_REASON_MAX)
        driver = new_run_job(self._engine, self._stop_task.call(run=run), self._runs.row(run))
        unwrap(self._engine.store().batch_stop((ctx.job_id, ctx.attempt), run, reason, driver))

    async def probe(self, ctx: Context, run: int, ref: str, before: Any, after: Any) -> Probed:
        """Decide by the current value of the target whether the change has happened. If the value is neither the old
        nor the new one, a person has to decide."""
        value = await self.probe_caller.query(self._runs.value, run)
        found = self._batch.encode_observed(ref, await self.probe_caller.call(value.observe, ref))
        was, wanted = (before, after) if self._action == "apply" else (after, before)
        if same(found, _text(wanted)):
            return Probed.done()
        if same(found, _text(was)):
            return Probed.not_done()
        return Probed.cannot_tell(
            f"{ref!r:.80} is now {found:.200}, which is neither the value before nor the value after"
        )


class _TargetAttempt:
    """The `TargetContext` of one attempt: the context of the job, with run, ref and action.

    Its effect key names database, tenant, run, ref and action, and never an attempt (B7).
    """

    def __init__(self, ctx: Context, run_id: int, ref: str, action: Literal["apply", "revert"]) -> None:
        self._ctx = ctx
        self.run_id = run_id
        self.ref = ref
        self.action = action

    @property
    def effect_key(self) -> str:
        # A target has one job for each action, so the identity in the key of the job is the same in every attempt.
        identity, _, _ = self._ctx.effect_key.partition("/")
        return f"{identity}/{self._ctx.tenant}/run/{self.run_id}/{self.ref}/{self.action}"

    @property
    def event_key(self) -> str:
        return f"{self.run_id}:{self.ref}:{self.action}:{self._ctx.attempt}"

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            return getattr(self._ctx, name)


def _text(value: object) -> str:
    return json_codec.encode(value, field="change", size_max=2**31)
