"""The preview of a run: its plan, which finds the targets, and the jobs that work out a chunk of them each."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

from detent.batch.ground import Ground, Runs
from detent.client.colour import Colour, colour_of
from detent.client.moves import one
from detent.declare.batch import Batch
from detent.declare.context import Context
from detent.declare.signals import Critical, Fatal, Snooze, Throttled
from detent.declare.task import Task
from detent.errors import DetentError, InvalidInput, LeaseLost, Refused
from detent.model import jsondoor
from detent.model.batch_records import BatchRunRow, Previewed, TargetRow
from detent.model.sanitize import error_text
from detent.store.contract import Store

__all__ = ["Planning", "gives_up"]

_FLUSH_AFTER = 1.0
"""Seconds of work that a crash may lose."""
_PAGE = 1000


class Planning:
    """The functions of `<batch>.plan` and `<batch>.preview`. Neither touches the world, so both are repeated at will:
    what is stored already is passed over."""

    def __init__(self, batch: Batch, ground: Ground, runs: Runs) -> None:
        self._batch = batch
        self._ground = ground
        self._runs = runs
        self.plan_colour: Colour = colour_of(batch.kind.targets)
        self.preview_colour: Colour = colour_of(batch.kind.preview)
        self.preview_task: Task[..., Any, Any]

    async def plan(self, ctx: Context, run: int, puts_right: int | None = None) -> None:
        """Store the targets as they come, a chunk at a time, each with the job that will preview it. A run that puts
        another right has that one's open mismatches for targets, and needs no further look at them."""
        colour = self.plan_colour
        if puts_right is not None:
            await colour.ask(self._plan_what_drifted, ctx, run, puts_right)
            return
        value = await colour.ask(self._runs.value, run)
        stored = self._stored_refs(run)
        refs: list[str] = []
        first = 1
        async for found in self._found(ctx, value):
            ref = self._checked(found)
            # What an attempt before this one has stored is compared, which is far cheaper than to store it again.
            before = await colour.ask(next, stored, None) if not refs else None
            if before is not None:
                _check_same(first, before, ref)
                first += 1
                continue
            if len(refs) == self._batch.options.chunk:
                await colour.ask(self._add, ctx, run, first, refs, False)
                first, refs = first + len(refs), []
            refs.append(ref)
        left_over = await colour.ask(next, stored, None)
        if left_over is not None:
            raise Fatal(f"targets() ended before {left_over!r:.80}, which it gave before it was cut off; preview anew")
        await colour.ask(self._add, ctx, run, first, refs, True)

    async def _found(self, ctx: Context, value: Any) -> AsyncIterator[object]:
        """What `targets` gives. Where it raises it is asked again as often as the batch says, and then given up."""
        try:
            async for found in self.plan_colour.each(value.targets):
                yield found
        except (Throttled, Snooze, Fatal):
            raise
        except Exception as error:
            retries = self._batch.options.retry.retries
            if await self.plan_colour.ask(gives_up, self._ground.store(), ctx, retries):
                raise Fatal(f"targets() raised {type(error).__name__}: {error}") from error
            raise

    def _stored_refs(self, run: int) -> Iterator[str]:
        """The refs of the run so far, in their order; no more than a page of them in memory."""
        after_n = 0
        while page := self._ground.store().target_list(run, after_n=after_n, limit=_PAGE):
            yield from (target.ref for target in page)
            after_n = page[-1].n

    def _checked(self, ref: object) -> str:
        try:
            return jsondoor.text(ref, field="ref", bytes_max=self._ground.settings.key_max)  # type: ignore[arg-type]
        except InvalidInput as error:
            raise Fatal(f"targets() gave something that is no ref: {error}") from None

    def _add(self, ctx: Context, run: int, first: int, refs: list[str], last: bool) -> None:
        row = self._runs.row(run)
        call = self.preview_task.call(run=run, first=first, last=first + len(refs) - 1)
        chunk = self._ground.job(call, row) if refs else None
        self._stored(self._ground.store().target_add((ctx.job_id, ctx.attempt), run, first, refs, chunk, last))

    def _stored(self, answer: BatchRunRow | DetentError) -> None:
        """What the record refuses, it refuses again: the plan is given up."""
        if isinstance(answer, Refused | InvalidInput) and not isinstance(answer, LeaseLost):
            raise Fatal(str(answer))
        one(answer)

    def _plan_what_drifted(self, ctx: Context, run: int, other: int) -> None:
        """What is, is before; what should be, is after. What could not be looked at is left out."""
        store, holder = self._ground.store(), (ctx.job_id, ctx.attempt)
        first, after_n = 1, 0
        while True:
            page = store.mismatch_list(other, after_n=after_n, limit=self._batch.options.chunk)
            drifted = [one for one in page if one.actual is not None and one.expected is not None]
            last = len(page) < self._batch.options.chunk
            self._stored(store.target_add(holder, run, first, [one.ref for one in drifted], None, last))
            known = [
                Previewed(n=n, before=found.actual, after=found.expected) for n, found in enumerate(drifted, first)
            ]
            if known:
                one(store.target_previewed(holder, run, known))
            if last:
                return
            first, after_n = first + len(drifted), page[-1].n

    async def preview(self, ctx: Context, run: int, first: int, last: int) -> None:
        """Work out the changes of a chunk, and store them every second or so. A target whose preview raises is tried
        again with the job; when its attempts are used up, the error is the target's own, and the others go on."""
        colour = self.preview_colour
        value = await colour.ask(self._runs.value, run)
        todo = await colour.ask(self._not_previewed, run, first, last)
        clock = self._ground.clock()
        done: list[Previewed] = []
        failed: list[tuple[TargetRow, Exception]] = []
        flush_at = clock.monotonic() + _FLUSH_AFTER
        for target in todo:
            try:
                change = await colour.call(value.preview, target.ref)
                before, after, changed = self._batch.encode_change(target.ref, change)
                done.append(Previewed(n=target.n, before=before, after=after, changed=changed))
            except (Throttled, Snooze, Critical):
                await colour.ask(self._store_previewed, ctx, run, done)
                raise
            except (Fatal, InvalidInput) as error:
                done.append(Previewed(n=target.n, error=error_text(error)))
            except Exception as error:
                failed.append((target, error))
            if ctx.cancelled:
                break
            if clock.monotonic() >= flush_at:
                await colour.ask(self._store_previewed, ctx, run, done)
                done, flush_at = [], clock.monotonic() + _FLUSH_AFTER
        if failed:
            retries = self._batch.options.retry.retries
            too_often = await colour.ask(gives_up, self._ground.store(), ctx, retries)
            if too_often:
                done += [Previewed(n=target.n, error=error_text(why)) for target, why in failed]
                failed = []
        await colour.ask(self._store_previewed, ctx, run, done)
        if ctx.cancelled:
            raise Snooze(0.0)
        if failed:
            (target, first_error), more = failed[0], len(failed) - 1
            first_error.add_note(f"in the preview of {target.ref!r}" + (f", and {more} more failed" if more else ""))
            raise first_error

    def _not_previewed(self, run: int, first: int, last: int) -> list[TargetRow]:
        most = last - first + 1
        page = self._ground.store().target_list(run, after_n=first - 1, limit=most)
        return [target for target in page if target.n <= last and target.previewed_at is None]

    def _store_previewed(self, ctx: Context, run: int, done: list[Previewed]) -> None:
        if done:
            one(self._ground.store().target_previewed((ctx.job_id, ctx.attempt), run, done))


def _check_same(n: int, before: str, now: str) -> None:
    if before != now:
        raise Fatal(
            f"targets() gave {now!r:.80} as number {n}, and {before!r:.80} before it was cut off: asked again, it must "
            f"give the same refs in the same order; preview anew"
        )


def gives_up(store: Store, ctx: Context, retries: int) -> bool:
    """Whether one more error of the batch's own methods is one too many. The death of a worker is none of theirs, so
    the job itself has more attempts than that."""
    return sum(1 for past in store.job_executions(ctx.job_id) if past.outcome == "error") >= retries
