"""Batch runs on PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Concatenate, ParamSpec, TypeVar

import msgspec

from detent.errors import DetentError, LeaseLost, UnknownState
from detent.lifecycle.library import BATCH_RUN
from detent.model.batch_records import (
    ActionRow,
    BatchFilter,
    BatchRunRow,
    Holder,
    MismatchRow,
    NewAction,
    NewBatchRun,
    Observed,
    Previewed,
    ReconciliationRow,
    TargetJob,
    TargetRow,
)
from detent.model.records import Enqueued, Moved, NewJob, Pruned
from detent.store.batches import shared_verbs
from detent.store.batches.rules import Named
from detent.store.batches.table_access import BatchTables, Undone
from detent.store.jobs.postgres_enqueue import job_enqueue
from detent.store.jobs.postgres_lists import now
from detent.store.jobs.postgres_moves import job_retry
from detent.store.postgres.driver.session import Session
from detent.store.postgres.statement import Row, Statement, moment, named, numbers, texts
from detent.store.postgres.verb_base import VerbBase, runs

__all__ = ["PostgresBatches"]

P = ParamSpec("P")
R = TypeVar("R")

_RUN = BatchRunRow.__struct_fields__
_RUNS = f"SELECT {', '.join(_RUN)} FROM"
_TARGET = TargetRow.__struct_fields__
_TARGETS = f"SELECT {', '.join('attempts' if name == 'attempts' else f'(target).{name}' for name in _TARGET)} FROM"
_LIST = f"{_TARGETS} detent.target_list_v1(%s::bigint, %s::text, %s::boolean, %s::text[], %s::integer, %s::integer)"
_ACTION = ActionRow.__struct_fields__
_RECONCILIATION = ReconciliationRow.__struct_fields__
_RECONCILIATIONS = f"SELECT {', '.join(_RECONCILIATION)} FROM detent.reconciliation_list_v1"
_MISMATCH = MismatchRow.__struct_fields__
_MISMATCHES = f"""
SELECT {", ".join("ref" if name == "ref" else f"(mismatch).{name}" for name in _MISMATCH)}
  FROM detent.mismatch_list_v1(%s::bigint, %s::boolean, %s::integer, %s::integer)
"""
_CREATE = """
SELECT detent.batch_create_v1(%s::bigint, %s::text, %s::text, %s::text, %s::text, %s::text, %s::text, %s::text,
                              %s::text, %s::integer, %s::double precision)
"""
_ACT = """
SELECT detent.batch_act_v2(%s::bigint, %s::bigint, %s::text, %s::text, %s::text, %s::text, %s::boolean, %s::bigint,
                           %s::integer[], %s::boolean)
"""
_RECORD = """
SELECT detent.reconcile_record_v1(%s::bigint, %s::integer, %s::integer, %s::integer, %s::integer, %s::integer[],
                                  %s::text[], %s::text[], %s::boolean)
"""
_BEGIN_RECONCILIATION = """
SELECT detent.reconcile_begin_v1(%s::bigint, %s::integer, %s::text, %s::bigint, %s::integer, %s::timestamptz)
"""


def target_list(
    run_id: int,
    *,
    state: str | None = None,
    refs: Sequence[str] | None = None,
    changed: bool | None = None,
    after_n: int = 0,
    limit: int = 1000,
) -> Statement[list[TargetRow]]:
    params = (run_id, state, changed, None if refs is None else texts(refs), after_n, limit)
    return Statement(_LIST, params, _target_rows, writes=False)


def mismatch_list(
    run_id: int, *, open_only: bool = True, after_n: int = 0, limit: int = 1000
) -> Statement[list[MismatchRow]]:
    def decode(rows: Sequence[Row]) -> list[MismatchRow]:
        return [MismatchRow(**named(_MISMATCH, row)) for row in rows]

    return Statement(_MISMATCHES, (run_id, open_only, after_n, limit), decode, writes=False)


def reconciliation_list(run_id: int, limit: int = 100) -> Statement[list[ReconciliationRow]]:
    return Statement(
        f"{_RECONCILIATIONS}(%s::bigint, %s::integer)", (run_id, limit), _reconciliation_rows, writes=False
    )


def batch_prune(before: datetime, after_id: int, limit: int, actor: str) -> Statement[Pruned]:
    sql = "SELECT runs, next_id FROM detent.batch_prune_v1(%s::timestamptz, %s::bigint, %s::integer, %s::text)"
    params = (moment(before, field="before"), after_id, limit, actor)
    return Statement(sql, params, lambda rows: Pruned(*rows[0]))


def _target_rows(rows: Sequence[Row]) -> list[TargetRow]:
    return [TargetRow(**named(_TARGET, row)) for row in rows]


def _reconciliation_rows(rows: Sequence[Row]) -> list[ReconciliationRow]:
    return [ReconciliationRow(**named(_RECONCILIATION, row)) for row in rows]


def _value(rows: Sequence[Row]) -> Any:
    return rows[0][0]


def _json(values: Mapping[int, Any]) -> str:
    return msgspec.json.encode(values).decode()


class PostgresBatchTables(VerbBase):
    """The tables of batch runs, and the verbs that only read them."""

    target_list = runs(target_list)
    mismatch_list = runs(mismatch_list)
    reconciliation_list = runs(reconciliation_list)

    def batch_get(self, run_id: int) -> BatchRunRow | None:
        return next(iter(self._batch_runs(f"{_RUNS} detent.batch_get_v1(%s::bigint)", run_id)), None)

    def batch_list(self, chosen: BatchFilter, before_id: int | None = None, limit: int = 100) -> list[BatchRunRow]:
        sql = f"{_RUNS} detent.batch_list_v1(%s::text, %s::text, %s::text, %s::bigint, %s::integer)"
        return self._batch_runs(sql, chosen.state, chosen.batch, chosen.tenant, before_id, limit)

    def reconcile_due(self, limit: int) -> list[BatchRunRow]:
        return self._batch_runs(f"{_RUNS} detent.reconcile_due_v1(%s::integer)", limit)

    def _batch_runs(self, sql: str, *params: Any, writes: bool = False) -> list[BatchRunRow]:
        return self._batch_ask(self._batch_run_rows, sql, *params, writes=writes)

    def _batch_ask(self, decode: Callable[[Sequence[Row]], R], sql: str, *params: Any, writes: bool = True) -> R:
        return self._session.run(Statement(sql, params, decode, writes))

    def _batch_run_rows(self, rows: Sequence[Row]) -> list[BatchRunRow]:
        found = [BatchRunRow(**named(_RUN, row)) for row in rows]
        for run in found:
            if run.state not in BATCH_RUN.states:
                known = tuple(BATCH_RUN.states)
                raise UnknownState(self._name, "nothing was changed", "batch_run", str(run.id), run.state, known)
        return found

    def _batch_now(self) -> datetime:
        return self._session.run(now())

    def _batch_lost(self, holder: Holder, run_id: int) -> LeaseLost | None:
        sql = "SELECT detent.batch_holds_v1(%s::bigint, %s::integer, %s::bigint)"
        lost = self._batch_ask(_value, sql, *holder, run_id)
        return None if lost is None else LeaseLost(*holder, lost)

    def _batch_lock(self, run_id: int) -> BatchRunRow | None:
        return next(iter(self._batch_runs(f"{_RUNS} detent.batch_lock_v1(%s::bigint)", run_id, writes=True)), None)

    def _batch_hold(self, run_id: int) -> BatchRunRow | None:
        return next(iter(self._batch_runs(f"{_RUNS} detent.batch_hold_v1(%s::bigint)", run_id, writes=True)), None)

    def _batch_enqueue(self, jobs: Sequence[NewJob]) -> list[Enqueued | DetentError]:
        return self._session.run(job_enqueue(jobs, notify=False))

    def _batch_retry(self, jobs: Sequence[int], action: ActionRow) -> list[Moved | DetentError]:
        return self._session.run(job_retry(jobs, action.actor, action.reason, notify=False))

    def _batch_insert(self, run: NewBatchRun) -> bool:
        params = (
            *(run.id, run.tenant, run.batch, run.payload, run.fingerprint, run.actor, run.reason, run.correlation_id),
            *(run.metadata, run.tolerate_count, run.tolerate_share),
        )
        return bool(self._batch_ask(_value, _CREATE, *params))

    def _batch_taken(self, run_id: int, first_n: int, refs: Sequence[str]) -> list[tuple[int, str]]:
        sql = "SELECT n, ref FROM detent.target_places_v1(%s::bigint, %s::integer, %s::text[])"
        return [(n, ref) for n, ref in self._batch_ask(list, sql, run_id, first_n, texts(refs), writes=False)]

    def _batch_add(self, run_id: int, new: Sequence[tuple[int, str]], last: bool) -> None:
        sql = "SELECT detent.target_add_v1(%s::bigint, %s::integer[], %s::text[], %s::boolean)"
        self._batch_ask(_value, sql, run_id, numbers(n for n, _ in new), texts(ref for _, ref in new), last)

    def _batch_previewed(self, run_id: int, items: Sequence[Previewed]) -> None:
        came_to = {
            item.n: (item.before, item.after, None if item.error is not None else item.changed, item.error)
            for item in items
        }
        sql = "SELECT detent.target_previewed_v1(%s::bigint, %s::integer[], %s::jsonb)"
        self._batch_ask(_value, sql, run_id, numbers(came_to), _json(came_to))

    def _batch_named(self, run_id: int, refs: Sequence[str]) -> list[Named]:
        sql = "SELECT n, ref, state, is_previewed FROM detent.target_named_v1(%s::bigint, %s::text[])"
        return [Named(*row) for row in self._batch_ask(list, sql, run_id, texts(refs), writes=False)]

    def _batch_begin(self, run: BatchRunRow, item: NewAction, job_id: int, chosen: Sequence[int] | None) -> None:
        params = (item.id, run.id, item.action, item.actor, item.reason, item.metadata, item.unchanged, job_id)
        self._batch_ask(_value, _ACT, *params, None if chosen is None else numbers(chosen), item.overwrite)

    def _batch_action(self, action_id: int) -> ActionRow | None:
        sql = f"SELECT {', '.join(_ACTION)} FROM detent.batch_action_v1(%s::bigint)"
        found = self._batch_ask(list, sql, action_id)
        return ActionRow(**named(_ACTION, found[0])) if found else None

    def _batch_next(self, action: ActionRow, limit: int) -> list[TargetRow]:
        sql = f"{_TARGETS} detent.batch_portion_v1(%s::bigint, %s::integer, NULL, %s::integer)"
        return self._batch_ask(_target_rows, sql, action.id, action.cursor, limit, writes=False)

    def _batch_to_move(self, action: ActionRow, after: int, until: int) -> tuple[list[int], list[int]]:
        sql = "SELECT need, again FROM detent.batch_chosen_v1(%s::bigint, %s::integer, %s::integer)"
        ((need, again),) = self._batch_ask(list, sql, action.id, after, until, writes=False)
        return need or [], again or []

    def _batch_take(self, action: ActionRow, jobs: Sequence[TargetJob]) -> int:
        sql = "SELECT detent.target_take_v1(%s::bigint, %s::boolean, %s::integer[], %s::jsonb)"
        of_targets = {job.n: job.job.id for job in jobs}
        params = (action.run_id, action.action == "apply", numbers(of_targets), _json(of_targets))
        return int(self._batch_ask(_value, sql, *params))

    def _batch_advance(self, action: ActionRow, to_cursor: int, moved: int, last: bool) -> bool:
        sql = "SELECT detent.batch_step_v1(%s::bigint, %s::integer, %s::integer, %s::integer, %s::boolean)"
        return bool(self._batch_ask(_value, sql, action.id, action.cursor, to_cursor, moved, last))

    def _batch_halt(self, run_id: int, reason: str) -> bool:
        return bool(self._batch_ask(_value, "SELECT detent.batch_stop_v1(%s::bigint, %s::text)", run_id, reason))

    def _batch_cancel(self, run: BatchRunRow, actor: str, reason: str | None) -> None:
        sql = "SELECT detent.batch_cancel_v1(%s::bigint, %s::text, %s::text)"
        self._batch_ask(_value, sql, run.id, actor, reason)

    def _batch_conflict(self, run_id: int, job_id: int, found: str) -> None:
        sql = "SELECT detent.target_conflict_v1(%s::bigint, %s::bigint, %s::text)"
        self._batch_ask(_value, sql, run_id, job_id, found)

    def _batch_open_reconciliation(self, run_id: int) -> int | None:
        no = self._batch_ask(_value, "SELECT detent.reconcile_open_v1(%s::bigint)", run_id)
        return None if no is None else int(no)

    def _batch_begin_reconciliation(
        self, run_id: int, planned: int | None, actor: str, job_id: int, following: int | None, at: datetime | None
    ) -> int:
        due = None if at is None else moment(at, field="reconcile_at")
        return int(self._batch_ask(_value, _BEGIN_RECONCILIATION, run_id, planned, actor, job_id, following, due))

    def _batch_reconciliation(self, run_id: int, no: int) -> ReconciliationRow | None:
        found = self._batch_ask(
            _reconciliation_rows, f"{_RECONCILIATIONS}(%s::bigint, 1, %s::integer)", run_id, no, writes=False
        )
        return found[0] if found else None

    def _batch_reconciled(
        self, was: ReconciliationRow, to_cursor: int, checked: int, found: Sequence[Observed], last: bool
    ) -> bool:
        params = (
            *(was.run_id, was.no, was.cursor, to_cursor, checked, numbers(one.n for one in found)),
            *(texts(one.expected for one in found), texts(one.actual for one in found), last),
        )
        return bool(self._batch_ask(_value, _RECORD, *params))


def _in_transaction(
    verb: Callable[Concatenate[BatchTables, P], R | DetentError],
) -> Callable[Concatenate[VerbBase, P], R | DetentError]:
    """Give a verb a transaction, which is rolled back if the verb is refused after it has written."""

    def in_transaction(self: VerbBase, /, *args: P.args, **kwargs: P.kwargs) -> R | DetentError:
        def work(session: Session) -> R | DetentError:
            return verb(PostgresBatchTables(session, self._name), *args, **kwargs)

        try:
            return self._session.together(work)
        except Undone as undone:
            return undone.error

    in_transaction.__name__ = verb.__name__
    return in_transaction


class PostgresBatches(PostgresBatchTables):
    """The verbs of batch runs."""

    batch_create = _in_transaction(shared_verbs.batch_create)
    target_add = _in_transaction(shared_verbs.target_add)
    target_previewed = _in_transaction(shared_verbs.target_previewed)
    batch_act = _in_transaction(shared_verbs.batch_act)
    batch_portion = _in_transaction(shared_verbs.batch_portion)
    batch_step = _in_transaction(shared_verbs.batch_step)
    batch_stop = _in_transaction(shared_verbs.batch_stop)
    batch_cancel = _in_transaction(shared_verbs.batch_cancel)
    target_conflict = _in_transaction(shared_verbs.target_conflict)
    reconcile_begin = _in_transaction(shared_verbs.reconcile_begin)
    reconcile_record = _in_transaction(shared_verbs.reconcile_record)
    batch_prune = runs(batch_prune)
