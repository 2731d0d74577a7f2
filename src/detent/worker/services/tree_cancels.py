"""Cancels the children of cancelled workflows and graphs."""

from __future__ import annotations

from detent.model.records import BadRow
from detent.store.contract import Store
from detent.store.row_errors import cause_of, is_of_one_row
from detent.worker.services.damage_isolation import DamageIsolation
from detent.worker.services.service import Service

__all__ = ["build_tree_cancel_service"]

_PORTION = 500
_STEPS_MAX = 20


def build_tree_cancel_service(store: Store) -> Service:
    """Return the service: portions of a transaction each, so that a tree of any size disturbs nobody. A worker that
    dies leaves the rest to another one."""
    isolation = DamageIsolation("tree cancels", store)

    def run(now: float) -> None:
        portion = _PORTION
        for _ in range(_STEPS_MAX):
            try:
                if store.tree_cancel_step(portion) == 0:
                    return
            except Exception as error:
                if not is_of_one_row(error):
                    raise
                if portion > 1:
                    portion //= 2
                    continue
                # A child that makes its portion fail is skipped.
                child_id = store.tree_cancel_skip()
                if child_id is None:
                    raise
                isolation.report([BadRow("job", str(child_id), f"cancel of a tree: {cause_of(error)}", child_id)], now)
            portion = min(_PORTION, portion * 2)

    return Service("tree cancels", 0.2, run, alone=True, at=lambda agenda: agenda.now if agenda.tree_cancels else None)
