"""Looking at the world again: is every applied target still what it was made?"""

from __future__ import annotations

from detent.batch.ground import Ground, Runs
from detent.batch.planning import gives_up
from detent.client.colour import Colour, colour_of
from detent.client.moves import one
from detent.declare.batch import Batch, same
from detent.declare.context import Context
from detent.declare.signals import Critical, Snooze, Throttled
from detent.errors import TransitionRace
from detent.model import jsondoor
from detent.model.batch_records import Observed, ReconciliationRow, TargetRow
from detent.model.sanitize import message_text

__all__ = ["Reconciling"]

_PAGE = 100
_ERROR_MAX = 500


class Reconciling:
    """The function of `<batch>.reconcile`."""

    def __init__(self, batch: Batch, ground: Ground, runs: Runs) -> None:
        self._batch = batch
        self._ground = ground
        self._runs = runs
        self.colour: Colour = colour_of(getattr(batch.kind, "observe", None))

    async def reconcile(self, ctx: Context, run: int) -> None:
        """Walk along the applied targets, a page at a time; begun again, it goes on after the last page on record. A
        target that cannot be looked at is tried again with the job; at last it counts as one that differs, and nothing
        stands for what it is."""
        colour = self.colour
        value = await colour.ask(self._runs.value, run)
        look = await colour.ask(self._look, ctx, run)
        while look is not None and look.done_at is None:
            # What has no eyes finds nothing; its plan goes on all the same.
            targets = await colour.ask(self._page, run, look.cursor) if self._batch.observes else []
            found: list[Observed] = []
            for target in targets:
                actual, why = None, ""
                try:
                    actual = self._batch.encode_observed(target.ref, await colour.call(value.observe, target.ref))
                except (Throttled, Snooze, Critical):
                    raise
                except Exception as error:
                    if not await colour.ask(gives_up, self._ground.store(), ctx, self._batch.options.retry.retries):
                        error.add_note(f"while looking at {target.ref!r}")
                        raise
                    why = f"{type(error).__name__}: {error}"
                if actual is None or target.after is None or not same(actual, target.after):
                    found.append(Observed(target.n, target.after, actual))
                    self._say(ctx, run, look.no, target, actual, why)
            look = await colour.ask(self._record, ctx, look, targets, found)

    def _look(self, ctx: Context, run: int) -> ReconciliationRow | None:
        """The look that this job is for. None where it was never begun, or is gone."""
        looks = self._ground.store().reconciliation_list(run)
        return next((look for look in looks if look.job_id == ctx.job_id), None)

    def _page(self, run: int, after_n: int) -> list[TargetRow]:
        return self._ground.store().target_list(run, state="applied", after_n=after_n, limit=_PAGE)

    def _record(
        self, ctx: Context, look: ReconciliationRow, targets: list[TargetRow], found: list[Observed]
    ) -> ReconciliationRow | None:
        last = len(targets) < _PAGE
        to_cursor = targets[-1].n if targets else look.cursor
        answer = self._ground.store().reconcile_record(
            (ctx.job_id, ctx.attempt), look.run_id, look.no, look.cursor, to_cursor, len(targets), found, last
        )
        return self._look(ctx, look.run_id) if isinstance(answer, TransitionRace) else one(answer)

    def _say(self, ctx: Context, run: int, no: int, target: TargetRow, actual: str | None, why: str) -> None:
        ctx.event(
            message_text(f"{target.ref} cannot be looked at: {why}", bytes_max=_ERROR_MAX)
            if why
            else f"{target.ref} is not what it was made",
            level="warning",
            key=f"{run}:{target.n}:reconcile:{no}",
            ref=target.ref,
            expected=None if target.after is None else jsondoor.decode(target.after),
            actual=None if actual is None else jsondoor.decode(actual),
        )
