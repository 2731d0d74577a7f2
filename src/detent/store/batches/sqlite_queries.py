"""Reading batch runs on SQLite."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from detent.errors import UnknownState
from detent.lifecycle.library import BATCH_RUN
from detent.model.batch_records import (
    ActionRow,
    BatchFilter,
    BatchRunRow,
    MismatchRow,
    ReconciliationRow,
    TargetRow,
)
from detent.store.sqlite.driver.executor import Row
from detent.store.sqlite.verb_base import VerbBase, fields_named

__all__ = ["SqliteBatchQueries"]

_RUN_FIELDS = BatchRunRow.__struct_fields__
_RUN = f"SELECT {', '.join(_RUN_FIELDS)} FROM detent_batch_run"
_RUN_OF_ID = f"{_RUN} WHERE id = ?"
_RUNS = f"""
{_RUN}
 WHERE (:before IS NULL OR id < :before) AND (:state IS NULL OR state = :state) AND (:batch IS NULL OR batch = :batch)
   AND (:tenant IS NULL OR tenant = :tenant)
 ORDER BY id DESC LIMIT :limit
"""
_DUE = f"{_RUN} WHERE reconcile_at IS NOT NULL AND reconcile_at <= ? ORDER BY reconcile_at, id LIMIT ?"
_TARGET_FIELDS = TargetRow.__struct_fields__
_TARGET = "SELECT {}".format(
    ", ".join(
        "coalesce((SELECT j.attempt FROM detent_job j WHERE j.id = g.apply_job_id), 0)"
        if name == "attempts"
        else f"g.{name}"
        for name in _TARGET_FIELDS
    )
)
_FITS = "(:state IS NULL OR g.state = :state) AND (:changed IS NULL OR g.changed = :changed)"
_TARGETS = f"""
{_TARGET} FROM detent_target g WHERE g.run_id = :run AND g.n > :after AND {_FITS} ORDER BY g.n LIMIT :limit
"""
# The join starts at the refs: otherwise SQLite scans all targets of the run.
_TARGETS_OF_REFS = f"""
{_TARGET} FROM (SELECT DISTINCT value AS ref FROM json_each(:refs)) u
  CROSS JOIN detent_target g ON g.run_id = :run AND g.ref = u.ref
 WHERE +g.n > :after AND {_FITS} ORDER BY g.n LIMIT :limit
"""
_BETWEEN = "g.n > :after AND g.n <= :until"
_TO_MOVE = {
    "apply": "g.state = 'preview' AND g.changed IS NOT NULL AND (g.changed OR :unchanged)",
    "retry_failed": "g.state = 'failed'",
    "roll_back": "g.state = 'applied' AND (g.revert_job_id IS NULL OR g.revert_state = 'failed')",
}
_PORTION = {
    action: f" FROM detent_target g WHERE g.run_id = :run AND {_BETWEEN} AND {which} ORDER BY g.n LIMIT :limit"
    for action, which in _TO_MOVE.items()
}
_PORTION_CHOSEN = {
    action: f"""
  FROM detent_batch_choice c CROSS JOIN detent_target g ON g.run_id = :run AND g.n = c.n
 WHERE c.action_id = :action AND c.n > :after AND c.n <= :until AND g.state = '{state}'
 ORDER BY c.n LIMIT :limit
"""
    for action, state in (("apply", "preview"), ("retry_failed", "failed"))
}
_ACTION_FIELDS = ActionRow.__struct_fields__
_ACTION = f"SELECT {', '.join(_ACTION_FIELDS)} FROM detent_batch_action WHERE id = ?"
_RECONCILIATION_FIELDS = ReconciliationRow.__struct_fields__
_RECONCILIATION = f"SELECT {', '.join(_RECONCILIATION_FIELDS)} FROM detent_reconciliation"
_RECONCILIATIONS = f"{_RECONCILIATION} WHERE run_id = ? ORDER BY no DESC LIMIT ?"
_RECONCILIATION_OF_NO = f"{_RECONCILIATION} WHERE run_id = ? AND no = ?"
_MISMATCH_FIELDS = MismatchRow.__struct_fields__
_MISMATCHES = f"""
SELECT {", ".join("g.ref" if name == "ref" else f"m.{name}" for name in _MISMATCH_FIELDS)}
  FROM detent_mismatch m JOIN detent_target g ON g.run_id = m.run_id AND g.n = m.n
 WHERE m.run_id = :run AND m.n > :after AND (NOT :open OR m.resolved_at IS NULL) ORDER BY m.n, m.no LIMIT :limit
"""
_ALL = -1  # SQLite takes a negative limit for none
_LAST = 2**31 - 1  # no target has a higher number


class SqliteBatchQueries(VerbBase):
    """The verbs of batch runs that only read."""

    def batch_get(self, run_id: int) -> BatchRunRow | None:
        found = self._db.rows(_RUN_OF_ID, (run_id,))
        return self._batch_run(found[0]) if found else None

    def batch_list(self, chosen: BatchFilter, before_id: int | None = None, limit: int = 100) -> list[BatchRunRow]:
        fits = {"state": chosen.state, "batch": chosen.batch, "tenant": chosen.tenant}
        return [self._batch_run(row) for row in self._db.rows(_RUNS, fits | {"before": before_id, "limit": limit})]

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
        fits: dict[str, Any] = {"run": run_id, "state": state, "after": after_n, "limit": limit}
        fits["changed"] = None if changed is None else int(changed)
        if refs is None:
            return _targets(self._db.rows(_TARGETS, fits))
        return _targets(self._db.rows(_TARGETS_OF_REFS, fits | {"refs": json.dumps(list(refs))}))

    def mismatch_list(
        self, run_id: int, *, open_only: bool = True, after_n: int = 0, limit: int = 1000
    ) -> list[MismatchRow]:
        which = {"run": run_id, "open": int(open_only), "after": after_n, "limit": limit}
        return [MismatchRow(**fields_named(_MISMATCH_FIELDS, row)) for row in self._db.rows(_MISMATCHES, which)]

    def reconciliation_list(self, run_id: int, limit: int = 100) -> list[ReconciliationRow]:
        return [
            ReconciliationRow(**fields_named(_RECONCILIATION_FIELDS, row))
            for row in self._db.rows(_RECONCILIATIONS, (run_id, limit))
        ]

    def reconcile_due(self, limit: int) -> list[BatchRunRow]:
        return [self._batch_run(row) for row in self._db.rows(_DUE, (self._now(), limit))]

    def _batch_reconciliation(self, run_id: int, no: int) -> ReconciliationRow | None:
        found = self._db.rows(_RECONCILIATION_OF_NO, (run_id, no))
        return ReconciliationRow(**fields_named(_RECONCILIATION_FIELDS, found[0])) if found else None

    def _batch_action(self, action_id: int) -> ActionRow | None:
        found = self._db.rows(_ACTION, (action_id,))
        if not found:
            return None
        fields = fields_named(_ACTION_FIELDS, found[0])
        return ActionRow(**fields | {"unchanged": bool(fields["unchanged"])})

    def _batch_next(self, action: ActionRow, limit: int) -> list[TargetRow]:
        """Return the next targets that an action has to move."""
        return _targets(self._batch_chosen(_TARGET, action, action.cursor, _LAST, limit))

    def _batch_to_move(self, action: ActionRow, after: int, until: int) -> tuple[list[int], list[int]]:
        """Return the numbers of the targets of a portion that need a job, and the jobs to retry."""
        rows = self._batch_chosen("SELECT g.n, g.apply_job_id, g.revert_job_id", action, after, until, _ALL)
        match action.action:
            case "apply":
                return [n for n, _, _ in rows], []
            case "retry_failed":
                return [], [applied for _, applied, _ in rows]
            case "roll_back":
                again = [reverted for _, _, reverted in rows if reverted is not None]
                return [n for n, _, reverted in rows if reverted is None], again

    def _batch_chosen(self, columns: str, action: ActionRow, after: int, until: int, limit: int) -> list[Row]:
        which = {"run": action.run_id, "after": after, "until": until, "limit": limit}
        if action.chosen is not None:
            return self._db.rows(columns + _PORTION_CHOSEN[action.action], which | {"action": action.id})
        return self._db.rows(columns + _PORTION[action.action], which | {"unchanged": int(action.unchanged)})

    def _batch_run(self, row: Row) -> BatchRunRow:
        run = BatchRunRow(**fields_named(_RUN_FIELDS, row))
        if run.state not in BATCH_RUN.states:
            known = tuple(BATCH_RUN.states)
            raise UnknownState(self._database, "nothing was changed", "batch_run", str(run.id), run.state, known)
        return run


def _targets(rows: Sequence[Row]) -> list[TargetRow]:
    return [TargetRow(**fields_named(_TARGET_FIELDS, row)) for row in rows]
