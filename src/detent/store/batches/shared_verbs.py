"""The verbs of batch runs that judge before they write, once for both databases.

Each runs inside one transaction, on the `BatchTables` of its database. A verb locks the run or the action, asks `rules`
whether it may go on, and writes. `contract` says what each verb promises.
"""

from __future__ import annotations

from collections.abc import Sequence

from detent.errors import DetentError, IdConflict, InvalidInput, NotFound, TransitionRace
from detent.model.batch_records import (
    ActionPortion,
    BatchRunRow,
    Holder,
    NewAction,
    NewBatchRun,
    Observed,
    Previewed,
    ReconciliationRow,
    Stepped,
    TargetJob,
)
from detent.model.records import NewJob
from detent.store.batches.rules import (
    is_rest,
    is_same_run,
    next_reconciliation,
    nothing_left,
    refuse_act,
    refuse_add,
    refuse_cancel,
    refuse_reconciliation,
    refuse_refs,
)
from detent.store.batches.table_access import BatchTables, Undone

__all__ = [
    "batch_act",
    "batch_cancel",
    "batch_create",
    "batch_portion",
    "batch_step",
    "batch_stop",
    "reconcile_begin",
    "reconcile_record",
    "target_add",
    "target_conflict",
    "target_previewed",
]


def batch_create(tables: BatchTables, run: NewBatchRun, plan: NewJob) -> BatchRunRow | DetentError:
    if tables._batch_insert(run):
        _enqueue(tables, [plan])
    found = tables.batch_get(run.id)
    return found if found is not None and is_same_run(run, found) else IdConflict(run.id)


def target_add(
    tables: BatchTables,
    holder: Holder,
    run_id: int,
    first_n: int,
    refs: Sequence[str],
    preview: NewJob | None,
    last: bool,
) -> BatchRunRow | DetentError:
    run = _held(tables, holder, run_id, lock=True)
    if isinstance(run, DetentError):
        return run
    found = tables._batch_taken(run_id, first_n, refs)
    numbers = range(first_n, first_n + len(refs))
    at_numbers = {n: ref for n, ref in found if n in numbers}
    refused = refuse_add(run, first_n, refs, {ref: n for n, ref in found}, at_numbers)
    if refused is not None:
        return refused
    new = [(n, ref) for n, ref in zip(numbers, refs, strict=True) if n not in at_numbers]
    if new and preview is not None:
        _enqueue(tables, [preview])
    tables._batch_add(run_id, new, last)
    return _there(tables, run_id)


def target_previewed(
    tables: BatchTables, holder: Holder, run_id: int, items: Sequence[Previewed]
) -> BatchRunRow | DetentError:
    run = _held(tables, holder, run_id)
    if isinstance(run, DetentError):
        return run
    tables._batch_previewed(run_id, sorted(items, key=lambda item: item.n))
    return _there(tables, run_id)


def batch_act(tables: BatchTables, item: NewAction, driver: NewJob) -> BatchRunRow | DetentError:
    run = tables._batch_lock(item.run_id)
    if run is None:
        return NotFound("batch_run", str(item.run_id))
    there = tables._batch_action(item.id)
    if there is not None:
        is_same = there.run_id == item.run_id and there.action == item.action
        return run if is_same else IdConflict(item.id)
    refused = refuse_act(run, item)
    if refused is None and run.state != "preview" and is_rest(item):
        refused = None if tables.target_list(run.id, state="preview", changed=True, limit=1) else nothing_left(run)
    numbers = None
    if refused is None and item.refs is not None:
        found = tables._batch_named(item.run_id, item.refs)
        numbers = [named.n for named in found]
        refused = refuse_refs(item, found)
    if refused is not None:
        return refused
    _enqueue(tables, [driver])
    tables._batch_begin(run, item, driver.id, numbers)
    return _there(tables, item.run_id)


def batch_portion(tables: BatchTables, action_id: int, limit: int) -> ActionPortion | DetentError:
    action = tables._batch_action(action_id)
    if action is None:
        return NotFound("batch_action", str(action_id))
    found = tables._batch_next(action, limit)
    is_last = len(found) < limit
    end = found[-1].n if found and not is_last else _there(tables, action.run_id).total
    return ActionPortion(action=action, to_cursor=max(end, action.cursor), last=is_last, targets=tuple(found))


def batch_step(
    tables: BatchTables,
    holder: Holder,
    action_id: int,
    from_cursor: int,
    to_cursor: int,
    jobs: Sequence[TargetJob],
    last: bool,
) -> Stepped | DetentError:
    action = tables._batch_action(action_id)
    if action is None:
        return NotFound("batch_action", str(action_id))
    run = _held(tables, holder, action.run_id)
    if isinstance(run, DetentError):
        return run
    if action.done_at is not None or action.cursor == to_cursor > from_cursor:
        done = action.done_at is not None
        return Stepped(action_id=action_id, cursor=action.cursor, moved=action.moved, done=done)
    if action.cursor != from_cursor:
        return TransitionRace("batch_action", str(action_id), f"cursor {from_cursor}", f"cursor {action.cursor}")
    # The portion is chosen again, under the action's lock, and must be the one that the caller has jobs for.
    need, again = tables._batch_to_move(action, from_cursor, to_cursor)
    if sorted(job.n for job in jobs) != need:
        given = f"jobs for {len(jobs)} targets"
        return InvalidInput("jobs", given, f"one for each of the {len(need)} targets of the portion that need one")
    if jobs:
        _enqueue(tables, [job.job for job in jobs])
        took = tables._batch_take(action, jobs)
        if took != len(jobs):
            raise Undone(TransitionRace("batch_run", str(action.run_id), f"{len(jobs)} targets", str(took)))
    if again:
        _refuse_if_any(tables._batch_retry(again, action))
    moved = len(need) + len(again)
    if not tables._batch_advance(action, to_cursor, moved, last):
        raise Undone(TransitionRace("batch_action", str(action_id), f"cursor {from_cursor}", "another cursor"))
    return Stepped(action_id=action_id, cursor=to_cursor, moved=action.moved + moved, done=last)


def batch_stop(
    tables: BatchTables, holder: Holder, run_id: int, reason: str, driver: NewJob
) -> BatchRunRow | DetentError:
    run = _held(tables, holder, run_id)
    if isinstance(run, DetentError):
        return run
    if tables._batch_halt(run_id, reason):
        _enqueue(tables, [driver])
    return _there(tables, run_id)


def batch_cancel(
    tables: BatchTables, run_id: int, driver: NewJob, actor: str, reason: str | None = None
) -> BatchRunRow | DetentError:
    run = tables._batch_hold(run_id)
    if run is None:
        return NotFound("batch_run", str(run_id))
    if run.cancel_requested_at is not None:
        return run
    refused = refuse_cancel(run)
    if refused is not None:
        return refused
    tables._batch_cancel(run, actor, reason)
    if run.queued + run.applying > 0 or run.previewed_at is None:
        _enqueue(tables, [driver])
    return _there(tables, run_id)


def target_conflict(tables: BatchTables, holder: Holder, run_id: int, found: str) -> BatchRunRow | DetentError:
    run = _held(tables, holder, run_id)
    if isinstance(run, DetentError):
        return run
    tables._batch_conflict(run_id, holder[0], found)
    return _there(tables, run_id)


def reconcile_begin(
    tables: BatchTables, run_id: int, planned: int | None, job: NewJob, actor: str
) -> ReconciliationRow | DetentError:
    run = tables._batch_lock(run_id)
    if run is None:
        return NotFound("batch_run", str(run_id))
    refused = refuse_reconciliation(run)
    if refused is not None:
        return refused
    following, at = None, None
    if planned is not None:
        now = tables._batch_now()
        if run.reconcile_at is None or planned != run.reconcile_no or run.reconcile_at > now:
            found = f"reconciliation {run.reconcile_no}" if run.reconcile_at else "no reconciliation planned"
            return TransitionRace("batch_run", str(run_id), f"reconciliation {planned} due", found)
        assert run.finished_at is not None
        following, at = next_reconciliation(run.finished_at, planned, now)
    no = tables._batch_open_reconciliation(run_id)
    if no is None:
        _enqueue(tables, [job])
        no = tables._batch_begin_reconciliation(run_id, planned, actor, job.id, following, at)
    return _reconciliation_there(tables, run_id, no)


def reconcile_record(
    tables: BatchTables,
    holder: Holder,
    run_id: int,
    no: int,
    from_cursor: int,
    to_cursor: int,
    checked: int,
    mismatches: Sequence[Observed],
    last: bool,
) -> ReconciliationRow | DetentError:
    run = _held(tables, holder, run_id)
    if isinstance(run, DetentError):
        return run
    was = tables._batch_reconciliation(run_id, no)
    if was is None:
        return NotFound("reconciliation", f"{run_id}/{no}")
    if was.done_at is not None or was.cursor == to_cursor > from_cursor:
        return was
    if was.cursor != from_cursor or not tables._batch_reconciled(was, to_cursor, checked, mismatches, last):
        return TransitionRace("reconciliation", f"{run_id}/{no}", f"cursor {from_cursor}", f"cursor {was.cursor}")
    return _reconciliation_there(tables, run_id, no)


def _held(tables: BatchTables, holder: Holder, run_id: int, *, lock: bool = False) -> BatchRunRow | DetentError:
    """Return the run, if the caller holds a job of it. The job is locked before the run."""
    lost = tables._batch_lost(holder, run_id)
    run = tables._batch_lock(run_id) if lock else tables.batch_get(run_id)
    if run is None:
        return NotFound("batch_run", str(run_id))
    return lost or run


def _there(tables: BatchTables, run_id: int) -> BatchRunRow:
    run = tables.batch_get(run_id)
    assert run is not None
    return run


def _reconciliation_there(tables: BatchTables, run_id: int, no: int) -> ReconciliationRow:
    found = tables._batch_reconciliation(run_id, no)
    assert found is not None
    return found


def _enqueue(tables: BatchTables, jobs: Sequence[NewJob]) -> None:
    """Enqueue all jobs; if one is refused, the verb is undone."""
    _refuse_if_any(tables._batch_enqueue(jobs))


def _refuse_if_any(answers: Sequence[object]) -> None:
    for answer in answers:
        if isinstance(answer, DetentError):
            raise Undone(answer)
