"""The verbs of batch runs. Most are several statements in one transaction: the run or the action is locked, judged by
the rules that both databases share, and then written."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NoReturn

from detent.errors import DetentError, IdConflict, InvalidInput, LeaseLost, NotFound, TransitionRace
from detent.model.batch_records import (
    BatchFilter,
    BatchRunRow,
    Holder,
    MismatchRow,
    NewAction,
    NewBatchRun,
    Observed,
    Portion,
    Previewed,
    ReconciliationRow,
    Stepped,
    TargetJob,
    TargetRow,
)
from detent.model.records import NewJob, Pruned
from detent.store.batch_rules import (
    is_rest,
    is_same_run,
    next_look,
    nothing_left,
    refuse_act,
    refuse_add,
    refuse_look,
    refuse_refs,
)
from detent.store.jobs.postgres_enqueue import job_enqueue
from detent.store.jobs.postgres_lists import now as read_now
from detent.store.jobs.postgres_moves import job_retry
from detent.store.postgres.driver.session import Session
from detent.store.postgres.statements import batching
from detent.store.postgres.verb_base import VerbBase

__all__ = ["PostgresBatching"]


class _Refused(Exception):
    """A refusal after something was written: the transaction is rolled back, and the answer is the error."""

    def __init__(self, error: DetentError) -> None:
        self.error = error


class PostgresBatching(VerbBase):
    """The contract's words hold."""

    def batch_create(self, run: NewBatchRun, plan: NewJob) -> BatchRunRow | DetentError:
        """One row by its id, and the job."""

        def create(session: Session) -> BatchRunRow | DetentError:
            if session.run(batching.create(run)):
                _enqueue(session, [plan])
            found = session.run(batching.get(run.id, self._name))
            return found if found is not None and is_same_run(run, found) else IdConflict(run.id)

        try:
            return self._session.together(create)
        except _Refused as refused:
            return refused.error

    def target_add(
        self, holder: Holder, run_id: int, first_n: int, refs: Sequence[str], preview: NewJob | None, last: bool
    ) -> BatchRunRow | DetentError:
        """What is there already is passed over."""

        def add(session: Session) -> BatchRunRow | DetentError:
            run = self._batch_held(session, holder, run_id, lock=True)
            if isinstance(run, DetentError):
                return run
            found = session.run(batching.places(run_id, first_n, refs))
            numbers = range(first_n, first_n + len(refs))
            at_numbers = {n: ref for n, ref in found if n in numbers}
            refused = refuse_add(run, first_n, refs, {ref: n for n, ref in found}, at_numbers)
            if refused is not None:
                return refused
            new = [(n, ref) for n, ref in zip(numbers, refs, strict=True) if n not in at_numbers]
            if new and preview is not None:
                _enqueue(session, [preview])
            session.run(batching.add(run_id, new, last))
            return self._batch_there(session, run_id)

        try:
            return self._session.together(add)
        except _Refused as refused:
            return refused.error

    def target_previewed(self, holder: Holder, run_id: int, items: Sequence[Previewed]) -> BatchRunRow | DetentError:
        """What is on record stays."""

        def preview(session: Session) -> BatchRunRow | DetentError:
            run = self._batch_held(session, holder, run_id, lock=False)
            if isinstance(run, DetentError):
                return run
            session.run(batching.previewed(run_id, sorted(items, key=lambda item: item.n)))
            return self._batch_there(session, run_id)

        return self._session.together(preview)

    def batch_act(self, item: NewAction, driver: NewJob) -> BatchRunRow | DetentError:
        """Judged by the run's row and by the targets that were named, then written."""

        def act(session: Session) -> BatchRunRow | DetentError:
            run = session.run(batching.lock(item.run_id, self._name))
            if run is None:
                return NotFound("batch_run", str(item.run_id))
            there = session.run(batching.action(item.id))
            if there is not None:
                is_same = there.run_id == item.run_id and there.action == item.action
                return run if is_same else IdConflict(item.id)
            refused = refuse_act(run, item)
            if refused is None and run.state != "preview" and is_rest(item):
                left = session.run(batching.targets(run.id, "preview", True, None, 0, 1))
                refused = None if left else nothing_left(run)
            chosen = None
            if refused is None and item.refs is not None:
                found = session.run(batching.named_targets(item.run_id, item.refs))
                chosen = [named.n for named in found]
                refused = refuse_refs(item, found)
            if refused is not None:
                return refused
            _enqueue(session, [driver])
            session.run(batching.act(item, driver.id, chosen))
            return self._batch_there(session, item.run_id)

        try:
            return self._session.together(act)
        except _Refused as refused:
            return refused.error

    def batch_portion(self, action_id: int, limit: int) -> Portion | DetentError:
        """A walk along the targets."""

        def choose(session: Session) -> Portion | DetentError:
            action = session.run(batching.action(action_id))
            if action is None:
                return NotFound("batch_action", str(action_id))
            found = session.run(batching.portion(action_id, action.cursor, None, limit))
            is_last = len(found) < limit
            end = found[-1].n if found and not is_last else self._batch_there(session, action.run_id).total
            return Portion(action=action, to_cursor=max(end, action.cursor), last=is_last, targets=tuple(found))

        return self._session.together(choose)

    def batch_step(
        self, holder: Holder, action_id: int, from_cursor: int, to_cursor: int, jobs: Sequence[TargetJob], last: bool
    ) -> Stepped | DetentError:
        """The portion is chosen once more, under the action's lock, and must be the caller's."""

        def step(session: Session) -> Stepped | DetentError:
            action = session.run(batching.action(action_id))
            if action is None:
                return NotFound("batch_action", str(action_id))
            run = self._batch_held(session, holder, action.run_id, lock=False)
            if isinstance(run, DetentError):
                return run
            if action.done_at is not None or action.cursor == to_cursor > from_cursor:
                done = action.done_at is not None
                return Stepped(action_id=action_id, cursor=action.cursor, moved=action.moved, done=done)
            if action.cursor != from_cursor:
                expected, found = f"cursor {from_cursor}", f"cursor {action.cursor}"
                return TransitionRace("batch_action", str(action_id), expected, found)
            need, again = session.run(batching.chosen(action_id, from_cursor, to_cursor))
            if sorted(job.n for job in jobs) != need:
                given = f"jobs for {len(jobs)} targets"
                wanted = f"one for each of the {len(need)} targets of the portion that need one"
                return InvalidInput("jobs", given, wanted)
            if jobs:
                _enqueue(session, [job.job for job in jobs])
                took = session.run(batching.take(action.run_id, action.action == "apply", jobs))
                if took != len(jobs):
                    _refuse(TransitionRace("batch_run", str(action.run_id), f"{len(jobs)} targets", str(took)))
            if again:
                for answer in session.run(job_retry(again, action.actor, action.reason, notify=False)):
                    if isinstance(answer, DetentError):
                        _refuse(answer)
            moved = len(need) + len(again)
            session.run(batching.step(action_id, from_cursor, to_cursor, moved, last))
            return Stepped(action_id=action_id, cursor=to_cursor, moved=action.moved + moved, done=last)

        try:
            return self._session.together(step)
        except _Refused as refused:
            return refused.error

    def batch_stop(self, holder: Holder, run_id: int, reason: str, driver: NewJob) -> BatchRunRow | DetentError:
        """The open action ends here; the driver cancels what has not begun."""

        def stop(session: Session) -> BatchRunRow | DetentError:
            run = self._batch_held(session, holder, run_id, lock=False)
            if isinstance(run, DetentError):
                return run
            if session.run(batching.stop(run_id, reason)):
                _enqueue(session, [driver])
            return self._batch_there(session, run_id)

        try:
            return self._session.together(stop)
        except _Refused as refused:
            return refused.error

    def target_conflict(self, holder: Holder, run_id: int, found: str) -> BatchRunRow | DetentError:
        """By the job that the caller holds."""

        def record(session: Session) -> BatchRunRow | DetentError:
            run = self._batch_held(session, holder, run_id, lock=False)
            if isinstance(run, DetentError):
                return run
            session.run(batching.conflict(run_id, holder[0], found))
            return self._batch_there(session, run_id)

        return self._session.together(record)

    def reconcile_due(self, limit: int) -> list[BatchRunRow]:
        """The longest due first."""
        return self._session.run(batching.due(limit, self._name))

    def reconcile_begin(
        self, run_id: int, planned: int | None, job: NewJob, actor: str
    ) -> ReconciliationRow | DetentError:
        """One at a time: one whose job has given up is over."""

        def begin(session: Session) -> ReconciliationRow | DetentError:
            run = session.run(batching.lock(run_id, self._name))
            if run is None:
                return NotFound("batch_run", str(run_id))
            refused = refuse_look(run)
            if refused is not None:
                return refused
            now = session.run(read_now())
            following, at = None, None
            if planned is not None:
                if run.reconcile_at is None or planned != run.reconcile_no or run.reconcile_at > now:
                    found = f"look {run.reconcile_no}" if run.reconcile_at else "no look planned"
                    return TransitionRace("batch_run", str(run_id), f"look {planned} due", found)
                assert run.finished_at is not None
                following, at = next_look(run.finished_at, planned, now)
            no = session.run(batching.look_open(run_id))
            if no is None:
                _enqueue(session, [job])
                no = session.run(batching.look_begin(run_id, planned, actor, job.id, following, at))
            return session.run(batching.look(run_id, no))[0]

        try:
            return self._session.together(begin)
        except _Refused as refused:
            return refused.error

    def reconcile_record(
        self,
        holder: Holder,
        run_id: int,
        no: int,
        from_cursor: int,
        to_cursor: int,
        checked: int,
        mismatches: Sequence[Observed],
        last: bool,
    ) -> ReconciliationRow | DetentError:
        """The cursor, then what was found."""

        def record(session: Session) -> ReconciliationRow | DetentError:
            run = self._batch_held(session, holder, run_id, lock=False)
            if isinstance(run, DetentError):
                return run
            wrote = batching.look_record(run_id, no, from_cursor, to_cursor, checked, mismatches, last)
            there = session.run(batching.look(run_id, no))
            if not there:
                return NotFound("reconciliation", f"{run_id}/{no}")
            if there[0].done_at is not None or there[0].cursor == to_cursor > from_cursor:
                return there[0]
            if not session.run(wrote):
                expected, found = f"cursor {from_cursor}", f"cursor {there[0].cursor}"
                return TransitionRace("reconciliation", f"{run_id}/{no}", expected, found)
            return session.run(batching.look(run_id, no))[0]

        return self._session.together(record)

    def batch_get(self, run_id: int) -> BatchRunRow | None:
        """By its id."""
        return self._session.run(batching.get(run_id, self._name))

    def batch_list(self, chosen: BatchFilter, before_id: int | None = None, limit: int = 100) -> list[BatchRunRow]:
        """The newest first."""
        return self._session.run(batching.runs(chosen, before_id, limit, self._name))

    def target_list(
        self,
        run_id: int,
        *,
        state: str | None = None,
        refs: Sequence[str] | None = None,
        changed: bool | None = None,
        after_n: int = 0,
        limit: int = 1000,
    ) -> list[TargetRow]:
        """A walk along the numbers, or by the refs."""
        return self._session.run(batching.targets(run_id, state, changed, refs, after_n, limit))

    def mismatch_list(
        self, run_id: int, *, open_only: bool = True, after_n: int = 0, limit: int = 1000
    ) -> list[MismatchRow]:
        """By number, then look."""
        return self._session.run(batching.mismatches(run_id, open_only, after_n, limit))

    def reconciliation_list(self, run_id: int, limit: int = 100) -> list[ReconciliationRow]:
        """The newest first."""
        return self._session.run(batching.looks(run_id, limit))

    def batch_prune(self, before: datetime, after_id: int, limit: int, actor: str) -> Pruned:
        """The horizon first: the guards let nothing go that is not below it."""
        return self._session.run(batching.prune(before, after_id, limit, actor))

    def _batch_held(self, session: Session, holder: Holder, run_id: int, *, lock: bool) -> BatchRunRow | DetentError:
        """The run, where the caller holds a job of it. The job is locked before the run."""
        lost = session.run(batching.holds(holder, run_id))
        run = session.run((batching.lock if lock else batching.get)(run_id, self._name))
        if run is None:
            return NotFound("batch_run", str(run_id))
        return run if lost is None else LeaseLost(*holder, lost)

    def _batch_there(self, session: Session, run_id: int) -> BatchRunRow:
        run = session.run(batching.get(run_id, self._name))
        assert run is not None
        return run


def _enqueue(session: Session, jobs: Sequence[NewJob]) -> None:
    """All of them, or the refusal of one, which rolls back whatever was written."""
    for answer in session.run(job_enqueue(jobs, notify=False)):
        if isinstance(answer, DetentError):
            _refuse(answer)


def _refuse(error: DetentError) -> NoReturn:
    raise _Refused(error)
