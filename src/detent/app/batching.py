"""The part of `Detent` that is about batch runs: look first, then leap, and back."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar, overload

from detent.app.wiring import Wiring
from detent.batch.ground import Ground
from detent.batch.tasks import BatchTasks, Declare, declare_tasks
from detent.client.client import actor_and_reason, check_id, one
from detent.client.run import Reconciliation, Run
from detent.declare.batch import Batch, BatchMethods, BatchOptions
from detent.declare.enqueue import encode_metadata
from detent.declare.fields import options_of
from detent.declare.limit import Limit
from detent.declare.settings import Settings
from detent.errors import BatchChanged, DetentError, InvalidInput, NotFound
from detent.lifecycle.library import BATCH_RUN
from detent.model import jsondoor
from detent.model.backoff import Retry
from detent.model.batch_records import BatchAction, BatchFilter, BatchRunRow, NewAction, NewBatchRun
from detent.model.records import Moved

__all__ = ["Batching"]

B = TypeVar("B", bound=BatchMethods)

log = logging.getLogger("detent.batch")

_LIST_MAX = 10_000
_DISCARDED_AT_ONCE = 500


class Batching:
    """Batches and their runs."""

    settings: Settings
    _wiring: Wiring
    _batches: dict[str, BatchTasks]
    _declare_task: Declare

    @overload
    def batch(self, kind: type[B], /) -> type[B]: ...

    @overload
    def batch(
        self,
        /,
        *,
        name: str | None = None,
        aliases: Sequence[str] = (),
        queue: str = "default",
        priority: int = 0,
        retry: Retry | None = None,
        timeout: float | None = None,
        idempotent: bool = True,
        limit: Limit | None = None,
        limit_key: str | Callable[[Any, str], str] | None = None,
        cost: int | Callable[[Any, str], int] | None = None,
        tolerate: float | None = None,
        chunk: int = 500,
        version: str = "",
    ) -> Callable[[type[B]], type[B]]: ...

    def batch(
        self,
        kind: type[Any] | None = None,
        /,
        *,
        name: str | None = None,
        aliases: Sequence[str] = (),
        retry: Retry | None = None,
        **options: Any,
    ) -> Any:
        """Declare a batch: `@app.batch`, or `@app.batch(limit=…, tolerate=…)`, above a dataclass with the methods
        `targets`, `preview` and `apply`, and perhaps `revert` and `observe`.

        `retry`, `timeout`, `idempotent`, `limit` and `queue` mean for each target what they mean for a task.
        `limit_key` and `cost`, what applying or reverting a target takes of its limit, may be functions of the batch
        and a ref. Where `idempotent=False` and the batch has `observe`, a target of which nobody knows whether it was
        changed is looked at before it is tried again. `tolerate` is how many targets (5), or which share of them
        (0.02), may fail without an alarm. `chunk` targets are previewed in one job. Raise `version` when what `apply`
        does with a change is another thing than before: a run that was previewed under another version is not applied
        without a word (`BatchChanged`).
        """
        chosen = options_of(BatchOptions, "batch", {"retry": retry or Retry(), **options})

        def declare(found: type[Any]) -> type[Any]:
            batch = Batch(found, name=name, aliases=aliases, options=chosen, settings=self.settings)
            names = (batch.name, *batch.aliases)
            for name_ in names:
                if name_ in self._batches or names.count(name_) > 1:
                    raise InvalidInput("batch", f"the name {name_!r} twice", "one batch for each name")
            tasks = declare_tasks(batch, self._ground, self._declare_task)
            self._batches.update(dict.fromkeys(names, tasks))
            return found

        return declare if kind is None else declare(kind)

    @property
    def batches(self) -> Mapping[str, Batch]:
        """The declared batches by name and alias."""
        return {name: tasks.batch for name, tasks in self._batches.items()}

    def find_batch(self, name: str) -> Batch:
        """The batch of that name or alias. `NotFound`."""
        if name not in self._batches:
            raise NotFound("batch", repr(name))
        return self._batches[name].batch

    # -- doing -------------------------------------------------------------------------------------------------

    def preview(
        self,
        value: BatchMethods,
        /,
        *,
        actor: str = "client",
        reason: str | None = None,
        tenant: str = "",
        correlation_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> Run:
        """Begin a run: workers find its targets and work out what would become of each. Nothing is changed by it.
        `InvalidInput` where the batch is not declared here, `InvalidArguments` where its fields do not fit."""
        tasks = self._tasks_of_kind(value)
        name_max = self.settings.name_max
        jsondoor.text(tenant, field="tenant", bytes_max=name_max, allow_empty=True)
        if correlation_id is not None:
            jsondoor.text(correlation_id, field="correlation_id", bytes_max=name_max)
        payload = tasks.batch.encode(value)
        attached = encode_metadata(metadata, self.settings)
        return self._begin(tasks, payload, actor, reason, tenant, correlation_id, attached)

    def put_right(self, run: Run | int | str, /, *, actor: str, reason: str | None = None) -> Run:
        """Begin a run over the targets of another that were found not to be what it made them: from what they are to
        what they should be. It is read and applied like any other. `InvalidInput` where nothing is known to differ."""
        handle, tasks = self._handle_and_tasks(run)
        row = handle.row
        if not row.mismatches:
            raise InvalidInput("run", f"run {row.id} without open mismatches", "one of which a look found some")
        attached = encode_metadata({"puts_right": str(row.id)}, self.settings)
        together = row.correlation_id or str(row.id)
        return self._begin(tasks, row.payload, actor, reason, row.tenant, together, attached, puts_right=row.id)

    def apply(
        self,
        run: Run | int | str,
        /,
        *,
        actor: str,
        reason: str | None = None,
        only: Iterable[str] | None = None,
        unchanged: bool = False,
        leave_failed: bool = False,
        accept_changed: bool = False,
        overwrite: bool = False,
    ) -> Run:
        """Apply what the preview showed: all targets that would change, or `only` those refs. The others stay in
        preview and can be applied later, by another call. `unchanged` takes those that would stay as they are, too;
        `leave_failed` leaves out what could not be previewed.

        If the batch has `observe`, each target is compared with the preview first. A target that others have changed
        since is not changed: it fails with a conflict. `overwrite=True` changes it without that check.

        `PreviewNotReady` before all is worked out, or where some could not be and are not left out; `BatchChanged`
        where the batch was declared otherwise when it was previewed; `InvalidTransition` if nothing is left to apply;
        `InvalidInput` for refs that it does not have, or where there is nothing to apply.
        """
        handle, tasks = self._handle_and_tasks(run)
        row = handle.row
        if row.state != "rolled_back" and row.fingerprint != tasks.batch.fingerprint and not accept_changed:
            raise BatchChanged(row.id, row.batch)
        options = {"unchanged": unchanged, "leave_failed": leave_failed, "overwrite": overwrite}
        return self._act(handle, tasks, "apply", actor, reason, only, **options)

    def retry_failed(
        self,
        run: Run | int | str,
        /,
        *,
        actor: str,
        reason: str | None = None,
        only: Iterable[str] | None = None,
        overwrite: bool = False,
    ) -> Run:
        """Try failed targets again, all or `only` those, each under the effect key it had; `overwrite` as for `apply`.
        `RunBusy` while they are being applied, or once a rollback was asked for; `InvalidTransition`,
        `InvalidInput`."""
        handle, tasks = self._handle_and_tasks(run)
        return self._act(handle, tasks, "retry_failed", actor, reason, only, overwrite=overwrite)

    def roll_back(
        self, run: Run | int | str, /, *, actor: str, reason: str | None = None, overwrite: bool = False
    ) -> Run:
        """Bring all applied targets back to what they were; the run is rolled back when they are. Asked again where
        reverts gave up, those are tried again. If the batch has `observe`, a target that is not what this run has made
        it is not reverted, unless `overwrite` is true. `run.newer_runs()` tells which later runs have changed the same
        targets; they are logged as a warning.

        `RunBusy` while targets are being applied or reverted, `InvalidTransition`, `InvalidInput` where the batch has
        no `revert`."""
        handle, tasks = self._handle_and_tasks(run)
        row = handle.row
        if tasks.revert is None:
            raise InvalidInput(
                "run", f"batch {row.batch!r} has no revert", "a batch with revert(self, ctx, ref, change)"
            )
        newer = handle.newer_runs()
        acted = self._act(handle, tasks, "roll_back", actor, reason, None, overwrite=overwrite)
        for run_id, refs in newer.items():
            log.warning(
                "run %d is being rolled back, though run %d has changed some of its targets since: %s",
                *(row.id, run_id, ", ".join(refs)),
            )
        return acted

    def reconcile(self, run: Run | int | str, /, *, actor: str = "client") -> Reconciliation:
        """Look at every applied target of a run now: `app.reconcile(run).mismatches` waits for workers to have done so.
        While one look is under way, that one is meant. `InvalidTransition`, `RunBusy`, `InvalidInput` where the batch
        has no `observe`."""
        handle, tasks = self._handle_and_tasks(run)
        row = handle.row
        if not tasks.batch.observes:
            raise InvalidInput("run", f"batch {row.batch!r} has no observe", "a batch with observe(self, ref)")
        who, _ = actor_and_reason(actor, None, self.settings)
        store = self._wiring.store
        job = self._ground.job(tasks.reconcile.call(run=row.id), row)
        look = one(store.reconcile_begin(row.id, None, job, who))
        return Reconciliation(look, store, self._wiring.prepared.clock, self.settings)

    def discard_failed(
        self, run: Run | int | str, /, *, actor: str, reason: str | None = None, only: Iterable[str] | None = None
    ) -> list[Moved]:
        """Let the dead jobs of a run go: its failed targets stay failed, and nobody is asked about them any more."""
        handle = self.batch_run(run.id if isinstance(run, Run) else run)
        who, why = actor_and_reason(actor, reason, self.settings)
        chosen = None if only is None else _refs(only)
        ids = [one.apply_job_id for one in handle.targets(state="failed", only=chosen) if one.apply_job_id]
        answers: list[Moved | DetentError] = []
        for first in range(0, len(ids), _DISCARDED_AT_ONCE):
            answers += self._wiring.store.job_discard(ids[first : first + _DISCARDED_AT_ONCE], who, why)
        return [answer for answer in answers if isinstance(answer, Moved)]

    # -- looking -----------------------------------------------------------------------------------------------

    def batch_run(self, run_id: int | str) -> Run:
        """A batch run as it stands. `NotFound`."""
        return self._run(self._row(run_id))

    def runs(
        self,
        *,
        state: str | None = None,
        batch: str | None = None,
        tenant: str | None = None,
        before_id: int | None = None,
        limit: int = 100,
    ) -> list[Run]:
        """Runs that fit, the newest first, below `before_id`."""
        if state is not None and state not in BATCH_RUN.states:
            raise InvalidInput("state", repr(state)[:80], ", ".join(BATCH_RUN.states))
        if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= _LIST_MAX:
            raise InvalidInput("limit", repr(limit)[:80], f"a whole number from 1 to {_LIST_MAX}")
        for field, name in (("batch", batch), ("tenant", tenant)):
            if name is not None:
                jsondoor.text(name, field=field, bytes_max=self.settings.name_max, allow_empty=True)
        chosen = BatchFilter(state=state, batch=batch, tenant=tenant)
        below = None if before_id is None else check_id(before_id)
        return [self._run(row) for row in self._wiring.store.batch_list(chosen, below, limit)]

    # -- inside ------------------------------------------------------------------------------------------------

    @property
    def _ground(self) -> Ground:
        return Ground(
            store=lambda: self._wiring.store,
            ids=lambda: self._wiring.ids,
            clock=lambda: self._wiring.prepared.clock,
            settings=self.settings,
        )

    def _begin(
        self,
        tasks: BatchTasks,
        payload: str,
        actor: str,
        reason: str | None,
        tenant: str,
        correlation_id: str | None,
        metadata: str | None,
        puts_right: int | None = None,
    ) -> Run:
        who, why = actor_and_reason(actor, reason, self.settings)
        count, share = tasks.batch.options.tolerated
        (run_id,) = self._wiring.ids.take(1)
        new = NewBatchRun(
            id=run_id,
            batch=tasks.batch.name,
            payload=payload,
            fingerprint=tasks.batch.fingerprint,
            actor=who,
            reason=why,
            tenant=tenant,
            correlation_id=correlation_id,
            metadata=metadata,
            tolerate_count=count,
            tolerate_share=share,
        )
        asked = {"run": run_id} if puts_right is None else {"run": run_id, "puts_right": puts_right}
        plan = self._ground.job(tasks.plan.call(**asked), new)
        return self._run(one(self._wiring.store.batch_create(new, plan)))

    def _act(
        self,
        handle: Run,
        tasks: BatchTasks,
        action: BatchAction,
        actor: str,
        reason: str | None,
        only: Iterable[str] | None,
        *,
        unchanged: bool = False,
        leave_failed: bool = False,
        overwrite: bool = False,
    ) -> Run:
        who, why = actor_and_reason(actor, reason, self.settings)
        (action_id,) = self._wiring.ids.take(1)
        refs = None if only is None else _refs(only)
        item = NewAction(
            id=action_id,
            run_id=handle.id,
            action=action,
            actor=who,
            reason=why,
            refs=refs,
            unchanged=unchanged,
            leave_failed=leave_failed,
            overwrite=overwrite,
        )
        driver = self._ground.job(tasks.step.call(run=handle.id, action=action_id), handle.row)
        handle.row = one(self._wiring.store.batch_act(item, driver))
        return handle

    def _tasks_of_kind(self, value: object) -> BatchTasks:
        for tasks in self._batches.values():
            if tasks.batch.kind is type(value):
                return tasks
        found = f"the class {value.__name__}" if isinstance(value, type) else f"a value of type {type(value).__name__}"
        declared = ", ".join(sorted(tasks.batch.kind.__name__ for tasks in self._batches.values()))
        raise InvalidInput("batch", found, f"a value of a declared batch: {declared or 'none is declared'}")

    def _handle_and_tasks(self, run: Run | int | str) -> tuple[Run, BatchTasks]:
        """The handle that was given, which then shows what became of it, or one of its own for a number."""
        handle = run.refresh() if isinstance(run, Run) else self.batch_run(run)
        if handle.batch not in self._batches:
            raise NotFound("batch", repr(handle.batch))
        return handle, self._batches[handle.batch]

    def _row(self, run_id: int | str) -> BatchRunRow:
        row = self._wiring.store.batch_get(check_id(run_id))
        if row is None:
            raise NotFound("run", str(run_id))
        return row

    def _run(self, row: BatchRunRow) -> Run:
        return Run(row, self._wiring.store, self._wiring.prepared.clock, self.settings)


def _refs(only: Iterable[str]) -> tuple[str, ...]:
    if isinstance(only, str):
        raise InvalidInput("only", f"the string {only!r:.80}", "a list of refs")
    refs = tuple(only)
    for ref in refs:
        jsondoor.text(ref, field="ref", bytes_max=512)
    return refs
