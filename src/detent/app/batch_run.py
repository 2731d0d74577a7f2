"""The handle of a batch run."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, Self, TextIO

from msgspec import Struct

from detent.app.export import export_changes
from detent.app.new_batch_run import begin_batch_run
from detent.app.reconciliation import Mismatch, Reconciliation, mismatches_of
from detent.app.registry import Registry
from detent.batch.run_jobs import new_run_job
from detent.batch.stopper import cancel_waiting, new_stop_job
from detent.batch.tasks import BatchTasks
from detent.client.actor import actor_and_reason
from detent.client.engine import Engine
from detent.client.handle import Handle, RunHandle
from detent.client.job_verbs import unwrap
from detent.client.list_page import ListPage
from detent.client.polling import items_of, pauses_until, sleep_through
from detent.declare.enqueue import encode_metadata
from detent.errors import BatchChanged, DetentError, InvalidInput, NotFound, RunStuck, RunTimeout
from detent.lifecycle.library import BATCH_RUN, TARGET
from detent.model import json_codec
from detent.model.batch_records import (
    BatchAction,
    BatchFilter,
    BatchRunRow,
    NewAction,
    ReconciliationRow,
    TargetRow,
)
from detent.model.records import EventRow, Moved, TransitionRow

__all__ = ["BatchRun", "BatchRunSnapshot", "TargetChange", "target_change"]

log = logging.getLogger("detent.batch")

_PAGE = 1000
_UNTIL = frozenset({*BATCH_RUN.states, "previewed"})
_NEWER_RUNS = 20
_REFS_SHOWN = 5
_COUNTED = ("queued", "applying", "applied", "failed", "rolled_back")
_DISCARDED_AT_ONCE = 500
_PORTIONS_CANCELLED = 20
"""Maximum number of portions of waiting jobs that `cancel` itself cancels; a job cancels the others."""


class TargetChange(Struct, frozen=True, kw_only=True):
    """A target of a batch run with its change and its state. `changed` is whether `before` and `after` differ; None
    before it is previewed. `error` is why its preview or its last attempt failed. `conflict` is true if it was refused
    because others had changed it; then `found` is the value that was found."""

    ref: str
    state: str
    changed: bool | None
    before: Any
    after: Any
    error: str | None
    attempts: int
    job_id: int | None
    conflict: bool = False
    found: Any = None


class BatchRunSnapshot(RunHandle[BatchRunRow]):
    """A batch run as it was when it was last read."""

    def __init__(self, row: BatchRunRow, engine: Engine, registry: Registry) -> None:
        super().__init__(row, engine)
        self._registry = registry

    @classmethod
    def like(cls, other: Handle[BatchRunRow]) -> Self:
        """Return a handle of this class with what the other one knows."""
        assert isinstance(other, BatchRunSnapshot)
        return cls(other.row, other._engine, other._registry)

    def __repr__(self) -> str:
        return f"<BatchRun {self.id} {self.row.batch} {self.state}>"

    @property
    def batch(self) -> str:
        """The name of its batch."""
        return self.row.batch

    @property
    def total(self) -> int:
        """Number of targets known so far."""
        return self.row.total

    @property
    def counts(self) -> dict[str, int]:
        """Number of targets in each state: `{"applied": 180, "failed": 20}`."""
        found = {state: getattr(self.row, state) for state in _COUNTED}
        found = {"preview": self.row.total - sum(found.values()), **found}
        return {state: count for state, count in found.items() if count}

    @property
    def is_previewed(self) -> bool:
        """Whether the change of every target is computed."""
        return self.row.previewed_at is not None

    @property
    def tolerated(self) -> bool:
        """Whether no more targets failed than the batch tolerates."""
        return self.row.tolerated

    @property
    def error(self) -> str | None:
        """The critical error that stopped the run, who cancelled it and why, or the error of a dead job that it depends
        on."""
        return self.row.critical or self.row.error

    @property
    def conflicts(self) -> int:
        """Number of targets that were refused because others had changed them."""
        return self.row.conflicts

    @property
    def rests(self) -> bool:
        """Whether nothing more happens by itself: it is previewed, ended, or rolled back as far as possible."""
        row = self.row
        if row.outstanding or row.reverting or row.queued or row.applying:
            return False
        return self.is_previewed if row.state == "preview" else row.state in (*BATCH_RUN.rests, "rolled_back")


class BatchRun(BatchRunSnapshot):
    """Handle of a batch run: a snapshot of it, and the verbs on it."""

    def refresh(self) -> Self:
        """Read the run again, and return this handle. `NotFound`."""
        row = self._engine.store.batch_get(self.id)
        if row is None:
            raise NotFound("run", str(self.id))
        self.row = row
        return self

    def wait(self, timeout: float | None = None, until: Collection[str] | None = None) -> Self:
        """Wait until the run is in one of the states `until`, where `previewed` means preview with every change
        computed. Without `until`, wait until the run rests. Return this handle, read again.

        `RunTimeout` (a TimeoutError) after `timeout` seconds; the run continues. `RunStuck` if it will not get there by
        itself: a job that the whole run needs is dead, or the run has ended in another state. A run in preview is not
        stuck: someone may apply it.
        """
        sleep_through(self._wait_steps(timeout, until), self._engine.clock)
        return self

    def _wait_steps(self, timeout: float | None = None, until: Collection[str] | None = None) -> Iterator[float]:
        wanted = None if until is None else _checked_until(until)
        engine = self._engine
        yield from pauses_until(lambda: self._is_there(wanted), timeout, engine.clock, engine.settings, self._late)

    def _is_there(self, wanted: frozenset[str] | None) -> bool:
        row = self.refresh().row
        if wanted is None:
            there = self.rests
        else:
            there = row.state in wanted or ("previewed" in wanted and row.state == "preview" and self.is_previewed)
        if not there and row.stuck:
            raise RunStuck(self.id, row.state, row.error or "")
        if not there and wanted is not None and row.state != "preview" and self.rests:
            why = f"it has ended and will not become {' or '.join(sorted(wanted))} by itself"
            raise RunStuck(self.id, row.state, why, "Retry its failed targets, or wait for another state.")
        return there

    def _late(self, waited: float) -> RunTimeout:
        return RunTimeout(self.id, self.state, waited)

    # -- acting ------------------------------------------------------------------------------------------------

    def apply(
        self,
        *,
        only: Iterable[str] | None = None,
        unchanged: bool = False,
        leave_failed: bool = False,
        accept_changed: bool = False,
        overwrite: bool = False,
        actor: str | None = None,
        reason: str | None = None,
    ) -> Self:
        """Apply the previewed changes: all targets that would change, or `only` those refs. The others stay in preview
        and can be applied later. Return this handle, read again.

        - `unchanged`: also apply targets that would not change.
        - `leave_failed`: leave out targets whose preview failed.
        - `accept_changed`: apply even if the batch's code has changed since the preview.
        - `overwrite`: do not check for conflicts. Without it, if the batch has `observe`, each target is first compared
          with the preview, and a target that others have changed fails with a conflict.

        `PreviewNotReady` before every change is computed, or if previews failed and are not left out; `BatchChanged`;
        `InvalidTransition` if nothing is left to apply; `InvalidInput` for refs that the run does not have.
        """
        tasks = self.refresh()._tasks()
        row = self.row
        if row.state != "rolled_back" and row.fingerprint != tasks.batch.fingerprint and not accept_changed:
            raise BatchChanged(row.id, row.batch)
        options = {"unchanged": unchanged, "leave_failed": leave_failed, "overwrite": overwrite}
        return self._act(tasks, "apply", actor, reason, only, **options)

    def retry_failed(
        self,
        *,
        only: Iterable[str] | None = None,
        overwrite: bool = False,
        actor: str | None = None,
        reason: str | None = None,
    ) -> Self:
        """Retry failed targets, all or `only` those, each with the same effect key; `overwrite` as for `apply`. Return
        this handle, read again. `RunBusy` while targets are being applied, or once a rollback was requested;
        `InvalidTransition`, `InvalidInput`."""
        return self._act(self.refresh()._tasks(), "retry_failed", actor, reason, only, overwrite=overwrite)

    def roll_back(self, *, overwrite: bool = False, actor: str | None = None, reason: str | None = None) -> Self:
        """Revert all applied targets; when all are reverted, the run is rolled back. Call it again to retry reverts
        that failed. Return this handle, read again.

        If the batch has `observe`, a target that no longer has the applied value is not reverted, unless `overwrite` is
        true. `newer_runs()` returns later runs that have changed the same targets; they are logged as a warning.

        `RunBusy` while targets are being applied or reverted, `InvalidTransition`, `InvalidInput` if the batch has no
        `revert`.
        """
        tasks = self.refresh()._tasks()
        row = self.row
        if tasks.revert is None:
            raise InvalidInput(
                "run", f"batch {row.batch!r} has no revert", "a batch with revert(self, ctx, ref, change)"
            )
        newer = self.newer_runs()
        self._act(tasks, "roll_back", actor, reason, None, overwrite=overwrite)
        for run_id, refs in newer.items():
            log.warning(
                "Rolling back run %d, although run %d has changed some of its targets since: %s.",
                *(row.id, run_id, ", ".join(refs)),
            )
        return self

    def cancel(self, *, actor: str | None = None, reason: str | None = None) -> Self:
        """Cancel the run. In preview, or before the first target is being applied, it is cancelled at once. Otherwise
        targets that have not begun are cancelled, those being applied finish, and then the run is cancelled; `wait()`
        waits for that. Applied targets stay applied and can be rolled back. Cancelling it again is a no-op. Return this
        handle, read again. `InvalidTransition` if the run has ended, `NotFound`."""
        self.refresh()
        engine = self._engine
        who, why = actor_and_reason(actor, reason, engine.settings)
        driver = new_stop_job(engine.store, engine.ids, self.row)
        self.row = unwrap(engine.store.batch_cancel(self.id, driver, who, why))
        for _ in islice(cancel_waiting(engine.store, self.row), _PORTIONS_CANCELLED):
            pass
        return self.refresh()

    def reconcile(self, *, actor: str | None = None, reason: str | None = None) -> Reconciliation:
        """Start to compare every applied target with its current value; `run.reconcile().wait().mismatches()` returns
        the differences. While a comparison is in progress, return that one. `InvalidTransition`, `RunBusy`,
        `InvalidInput` if the batch has no `observe`."""
        tasks = self.refresh()._tasks()
        row, engine = self.row, self._engine
        if not tasks.batch.observes:
            raise InvalidInput("run", f"batch {row.batch!r} has no observe", "a batch with observe(self, ref)")
        who, _ = actor_and_reason(actor, reason, engine.settings)
        job = new_run_job(self._registry.engine_ref, tasks.reconcile.call(run=row.id), row)
        return Reconciliation(unwrap(engine.store.reconcile_begin(row.id, None, job, who)), engine)

    def correct(self, *, actor: str | None = None, reason: str | None = None) -> BatchRun:
        """Begin a run over the mismatches, from their current values to what was applied. It is previewed and applied
        like any other run. `InvalidInput` if no mismatch is open."""
        tasks = self.refresh()._tasks()
        row = self.row
        if not row.mismatches:
            raise InvalidInput(
                "run", f"run {row.id} without open mismatches", "a run whose reconciliation has found mismatches"
            )
        attached = encode_metadata({"puts_right": str(row.id)}, self._engine.settings)
        correlation_id = row.correlation_id or str(row.id)
        new = begin_batch_run(
            self._engine,
            self._registry,
            tasks,
            row.payload,
            actor,
            reason,
            row.tenant,
            correlation_id,
            attached,
            row.id,
        )
        return BatchRun(new, self._engine, self._registry)

    def discard_failed(
        self, *, only: Iterable[str] | None = None, actor: str | None = None, reason: str | None = None
    ) -> ListPage[Moved]:
        """Discard the dead jobs of the run; its failed targets stay failed."""
        who, why = actor_and_reason(actor, reason, self._engine.settings)
        chosen = None if only is None else _refs(only)
        ids = [one.apply_job_id for one in self.targets(state="failed", only=chosen) if one.apply_job_id]
        answers: list[Moved | DetentError] = []
        for first in range(0, len(ids), _DISCARDED_AT_ONCE):
            answers += self._engine.store.job_discard(ids[first : first + _DISCARDED_AT_ONCE], who, why)
        return ListPage(answer for answer in answers if isinstance(answer, Moved))

    def _tasks(self) -> BatchTasks:
        return self._registry.batch_tasks(self.batch)

    def _act(
        self,
        tasks: BatchTasks,
        action: BatchAction,
        actor: str | None,
        reason: str | None,
        only: Iterable[str] | None,
        *,
        unchanged: bool = False,
        leave_failed: bool = False,
        overwrite: bool = False,
    ) -> Self:
        engine = self._engine
        who, why = actor_and_reason(actor, reason, engine.settings)
        (action_id,) = engine.ids.take(1)
        refs = None if only is None else _refs(only)
        item = NewAction(
            id=action_id,
            run_id=self.id,
            action=action,
            actor=who,
            reason=why,
            refs=refs,
            unchanged=unchanged,
            leave_failed=leave_failed,
            overwrite=overwrite,
        )
        driver = new_run_job(self._registry.engine_ref, tasks.step.call(run=self.id, action=action_id), self.row)
        self.row = unwrap(engine.store.batch_act(item, driver))
        return self

    # -- reading -----------------------------------------------------------------------------------------------

    def changes(
        self, *, state: str | None = None, only: Collection[str] | None = None, changed: bool | None = None
    ) -> Iterator[TargetChange]:
        """Yield its targets in the order of the plan, with before and after. Filters: those in a state, `only` some
        refs, those that would change or would not. `InvalidInput`."""
        return items_of(self._changes_pages(state=state, only=only, changed=changed), self._engine.clock)

    def _changes_pages(
        self, *, state: str | None = None, only: Collection[str] | None = None, changed: bool | None = None
    ) -> Iterator[tuple[list[TargetChange], float]]:
        for rows, pause in self._targets_pages(state=state, only=only, changed=changed):
            yield [target_change(row) for row in rows], pause

    def targets(
        self, *, state: str | None = None, only: Collection[str] | None = None, changed: bool | None = None
    ) -> Iterator[TargetRow]:
        """Yield its targets as they are on record. Filters as for `changes`. `InvalidInput`."""
        return items_of(self._targets_pages(state=state, only=only, changed=changed), self._engine.clock)

    def _targets_pages(
        self, *, state: str | None = None, only: Collection[str] | None = None, changed: bool | None = None
    ) -> Iterator[tuple[list[TargetRow], float]]:
        if state is not None and state not in TARGET.states:
            raise InvalidInput("state", repr(state)[:80], ", ".join(TARGET.states))
        refs = None if only is None else tuple(only)
        after_n, store = 0, self._engine.store
        while True:
            page = store.target_list(self.id, state=state, refs=refs, changed=changed, after_n=after_n, limit=_PAGE)
            yield page, 0.0
            if len(page) < _PAGE:
                return
            after_n = page[-1].n

    def export(
        self,
        to: str | Path | TextIO,
        format: str = "csv",
        *,
        state: str | None = None,
        only: Collection[str] | None = None,
        changed: bool | None = None,
    ) -> int:
        """Write the changes to a file as `csv` or `json`, and return the number of targets. A file that is given by
        path is written completely or not at all."""
        return export_changes(self.changes(state=state, only=only, changed=changed), to, format)

    def events(self, *, only: Collection[str] | None = None) -> Iterator[tuple[str, EventRow]]:
        """Yield the events of its targets' jobs, target by target, each with the ref of the target."""
        return items_of(self._events_pages(only=only), self._engine.clock)

    def _events_pages(
        self, *, only: Collection[str] | None = None
    ) -> Iterator[tuple[list[tuple[str, EventRow]], float]]:
        for targets, _ in self._targets_pages(only=only):
            for target in targets:
                for job_id in (target.apply_job_id, target.revert_job_id):
                    if job_id is not None:
                        yield [(target.ref, line) for line in self._lines(job_id)], 0.0

    def _lines(self, job_id: int) -> Iterator[EventRow]:
        after_seq = 0
        while page := self._engine.store.job_events(job_id, after_seq, _PAGE):
            yield from page
            after_seq = page[-1].seq

    def newer_runs(self) -> dict[int, list[str]]:
        """Return later runs of the same batch that have changed targets of this run: by id, with the first such refs.
        Only a sample is compared: the first 1,000 applied targets of this run, and the newest 20 runs."""
        begun, store = self.row.started_at, self._engine.store
        mine = [target.ref for target in store.target_list(self.id, state="applied")]
        if begun is None or not mine:
            return {}
        chosen = BatchFilter(batch=self.batch, tenant=self.row.tenant)
        found: dict[int, list[str]] = {}
        for row in self._engine.store.batch_list(chosen, None, _NEWER_RUNS):
            if row.id != self.id and row.applied and row.started_at is not None and row.started_at > begun:
                changed = self._engine.store.target_list(row.id, refs=mine, state="applied", limit=_REFS_SHOWN)
                found |= {row.id: [target.ref for target in changed]} if changed else {}
        return found

    def history(self) -> list[TransitionRow]:
        """Return every transition of the run in order, with actor and reason."""
        return self._engine.store.transitions(BATCH_RUN.name, str(self.id))

    def mismatches(self, *, open_only: bool = True) -> list[Mismatch]:
        """Return the targets that no longer match what was applied, as the last reconciliation found them; with
        `open_only=False`, also those that match again."""
        return [*mismatches_of(self._engine.store, self.id, open_only)]

    def reconciliations(self) -> list[ReconciliationRow]:
        """Return every reconciliation of the run, the newest first."""
        return self._engine.store.reconciliation_list(self.id)


def _value(text: str | None) -> Any:
    return None if text is None else json_codec.decode(text, field="change")


def _checked_until(until: Collection[str]) -> frozenset[str]:
    wanted = frozenset({until} if isinstance(until, str) else until)
    if not wanted or wanted - _UNTIL:
        raise InvalidInput("until", repr(sorted(wanted - _UNTIL))[:80], ", ".join(sorted(_UNTIL)))
    return wanted


def target_change(row: TargetRow) -> TargetChange:
    return TargetChange(
        ref=row.ref,
        state=row.state,
        changed=row.changed,
        before=_value(row.before),
        after=_value(row.after),
        error=row.preview_error or row.error,
        attempts=row.attempts,
        job_id=row.apply_job_id,
        conflict=row.conflict is not None,
        found=_value(row.conflict),
    )


def _refs(only: Iterable[str]) -> tuple[str, ...]:
    if isinstance(only, str):
        raise InvalidInput("only", f"the string {only!r:.80}", "a list of refs")
    refs = tuple(only)
    for ref in refs:
        json_codec.text(ref, field="ref", bytes_max=512)
    return refs
