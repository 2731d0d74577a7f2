"""The preview of a batch run: the job that finds the targets, and jobs that each preview a chunk of them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

from detent.batch.run_jobs import RunCache, new_run_job
from detent.client.engine import EngineRef
from detent.client.job_verbs import unwrap
from detent.client.method_caller import Caller, caller_for
from detent.declare.batch import Batch
from detent.declare.context import Context
from detent.declare.signals import Critical, Fatal, Snooze, Throttled
from detent.declare.task import Task
from detent.errors import DetentError, InvalidInput, LeaseLost, Refused, RunBusy
from detent.model import json_codec
from detent.model.batch_records import BatchRunRow, Previewed, TargetRow
from detent.model.stored_text import error_text
from detent.store.contract import Store

__all__ = ["Planner", "gives_up"]

_FLUSH_AFTER = 1.0
"""Maximum number of seconds of work that a crash may lose."""
_PAGE = 1000
_CANCELLED_PAUSE = 1.0
"""Seconds that the plan of a cancelled run waits until its job is cancelled."""


class Planner:
    """The functions of `<batch>.plan` and `<batch>.preview`. Neither has an effect, so both may be repeated: they skip
    what is stored already."""

    def __init__(self, batch: Batch, engine: EngineRef, runs: RunCache) -> None:
        self._batch = batch
        self._engine = engine
        self._runs = runs
        self.plan_caller: Caller = caller_for(batch.kind.targets)
        self.preview_caller: Caller = caller_for(batch.kind.preview)
        self.preview_task: Task[..., Any, Any]

    async def plan(self, ctx: Context, run: int, puts_right: int | None = None) -> None:
        """Store the targets chunk by chunk, each chunk with the job that will preview it. If the run corrects another
        one (`puts_right`), its targets are the open mismatches of that run, which need no preview."""
        caller = self.plan_caller
        if puts_right is not None:
            await caller.query(self._plan_mismatches, ctx, run, puts_right)
            return
        value = await caller.query(self._runs.value, run)
        stored = self._stored_refs(run)
        refs: list[str] = []
        first = 1
        async for found in self._found(ctx, value):
            ref = self._checked(found)
            # Targets that an earlier attempt has stored are compared, which is far cheaper than storing them again.
            before = await caller.query(next, stored, None) if not refs else None
            if before is not None:
                _check_same(first, before, ref)
                first += 1
                continue
            if len(refs) == self._batch.options.chunk:
                await caller.query(self._add, ctx, run, first, refs, False)
                first, refs = first + len(refs), []
            refs.append(ref)
        left_over = await caller.query(next, stored, None)
        if left_over is not None:
            raise Fatal(
                f"targets() no longer returns {left_over!r:.80}, as it did in an earlier attempt. Preview a new run."
            )
        await caller.query(self._add, ctx, run, first, refs, True)

    async def _found(self, ctx: Context, value: Any) -> AsyncIterator[object]:
        """Yield what `targets` returns. If it raises, it is retried as often as the batch says; then `Fatal`."""
        try:
            async for found in self.plan_caller.each(value.targets):
                yield found
        except (Throttled, Snooze, Fatal):
            raise
        except Exception as error:
            retries = self._batch.options.retry.retries
            if await self.plan_caller.query(gives_up, self._engine.store(), ctx, retries):
                raise Fatal(f"targets() raised {type(error).__name__}: {error}") from error
            raise

    def _stored_refs(self, run: int) -> Iterator[str]:
        """Yield the refs of the run so far, in order, with at most one page of them in memory."""
        after_n = 0
        while page := self._engine.store().target_list(run, after_n=after_n, limit=_PAGE):
            yield from (target.ref for target in page)
            after_n = page[-1].n

    def _checked(self, ref: object) -> str:
        try:
            return json_codec.text(ref, field="ref", bytes_max=self._engine.settings.key_max)  # type: ignore[arg-type]
        except InvalidInput as error:
            raise Fatal(f"targets() returned an invalid ref: {error}") from None

    def _add(self, ctx: Context, run: int, first: int, refs: list[str], last: bool) -> None:
        row = self._runs.row(run)
        call = self.preview_task.call(run=run, first=first, last=first + len(refs) - 1)
        chunk = new_run_job(self._engine, call, row) if refs else None
        self._stored(run, self._engine.store().target_add((ctx.job_id, ctx.attempt), run, first, refs, chunk, last))

    def _stored(self, run: int, answer: BatchRunRow | DetentError) -> None:
        """Raise `Fatal` for a refusal: the store would refuse the same plan again. If the run was cancelled, this job
        is about to be cancelled as well, and waits for that."""
        if isinstance(answer, RunBusy) and self._runs.row(run).state == "cancelled":
            raise Snooze(_CANCELLED_PAUSE)
        if isinstance(answer, Refused | InvalidInput) and not isinstance(answer, LeaseLost):
            raise Fatal(str(answer))
        unwrap(answer)

    def _plan_mismatches(self, ctx: Context, run: int, other: int) -> None:
        """Store the mismatches as targets: the current value is `before`, the expected one `after`. Targets that could
        not be observed are left out."""
        store, holder = self._engine.store(), (ctx.job_id, ctx.attempt)
        first, after_n = 1, 0
        while True:
            page = store.mismatch_list(other, after_n=after_n, limit=self._batch.options.chunk)
            drifted = [one for one in page if one.actual is not None and one.expected is not None]
            last = len(page) < self._batch.options.chunk
            self._stored(run, store.target_add(holder, run, first, [one.ref for one in drifted], None, last))
            known = [
                Previewed(n=n, before=found.actual, after=found.expected) for n, found in enumerate(drifted, first)
            ]
            if known:
                unwrap(store.target_previewed(holder, run, known))
            if last:
                return
            first, after_n = first + len(drifted), page[-1].n

    async def preview(self, ctx: Context, run: int, first: int, last: int) -> None:
        """Compute the changes of a chunk, and store them about every second. If the preview of a target raises, it is
        retried with the job. When its attempts are used up, the error is stored with the target, and the others go
        on."""
        caller = self.preview_caller
        value = await caller.query(self._runs.value, run)
        todo = await caller.query(self._not_previewed, run, first, last)
        clock = self._engine.clock()
        done: list[Previewed] = []
        failed: list[tuple[TargetRow, Exception]] = []
        flush_at = clock.monotonic() + _FLUSH_AFTER
        for target in todo:
            try:
                change = await caller.call(value.preview, target.ref)
                before, after, changed = self._batch.encode_change(target.ref, change)
                done.append(Previewed(n=target.n, before=before, after=after, changed=changed))
            except (Throttled, Snooze, Critical):
                await caller.query(self._store_previewed, ctx, run, done)
                raise
            except (Fatal, InvalidInput) as error:
                done.append(Previewed(n=target.n, error=error_text(error)))
            except Exception as error:
                failed.append((target, error))
            if ctx.cancelled:
                break
            if clock.monotonic() >= flush_at:
                await caller.query(self._store_previewed, ctx, run, done)
                done, flush_at = [], clock.monotonic() + _FLUSH_AFTER
        if failed:
            retries = self._batch.options.retry.retries
            too_often = await caller.query(gives_up, self._engine.store(), ctx, retries)
            if too_often:
                done += [Previewed(n=target.n, error=error_text(why)) for target, why in failed]
                failed = []
        await caller.query(self._store_previewed, ctx, run, done)
        if ctx.cancelled:
            raise Snooze(0.0)
        if failed:
            (target, first_error), more = failed[0], len(failed) - 1
            first_error.add_note(f"in the preview of {target.ref!r}" + (f", and {more} more failed" if more else ""))
            raise first_error

    def _not_previewed(self, run: int, first: int, last: int) -> list[TargetRow]:
        most = last - first + 1
        page = self._engine.store().target_list(run, after_n=first - 1, limit=most)
        return [target for target in page if target.n <= last and target.previewed_at is None]

    def _store_previewed(self, ctx: Context, run: int, done: list[Previewed]) -> None:
        if done:
            unwrap(self._engine.store().target_previewed((ctx.job_id, ctx.attempt), run, done))


def _check_same(n: int, before: str, now: str) -> None:
    if before != now:
        raise Fatal(
            f"targets() returned {now!r:.80} as number {n}, and {before!r:.80} in an earlier attempt. It must return "
            f"the same refs in the same order. Preview a new run."
        )


def gives_up(store: Store, ctx: Context, retries: int) -> bool:
    """Whether the batch's methods have used up their retries. Crashes of workers do not count, so the job itself has
    more attempts than that."""
    return sum(1 for past in store.job_executions(ctx.job_id) if past.outcome == "error") >= retries
