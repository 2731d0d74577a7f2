"""Show or apply the plan of a repair.

Each applied step has its line in the log, and the steps of one job are applied together or not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

from detent.errors import InvalidInput
from detent.model.records import RepairStep
from detent.store.repair.plan import Actions, Group, Look, counts_wrongly, plan

__all__ = ["RepairDatabase", "repair"]


class RepairDatabase(Look, Actions, Protocol):
    """What a repair needs of a database, inside one transaction."""

    def lock_out_writers(self) -> None:
        """Block all other writers until the end of the transaction."""
        ...

    def undo_if_refused(self, work: Callable[[], None]) -> str | None:
        """Do the work, or undo it if a guard or constraint refuses it, and return the message of the database."""
        ...


def repair(database: RepairDatabase, actor: str, reason: str, *, apply: bool) -> list[RepairStep]:
    """Return the plan; with `apply`, what became of it. A step that the database refused has `can` False.

    Raises `InvalidInput` for an empty actor or reason: every repair is recorded with both.
    """
    for field, value in (("actor", actor), ("reason", reason)):
        if not value.strip():
            raise InvalidInput(field, repr(value), "a text that says who repairs, and why")
    groups = list(plan(database))
    if apply and any(step.act for group in groups for step in group):
        database.lock_out_writers()
        groups = list(plan(database))  # again: rows may have changed before all writers were blocked
        done = [shown for group in groups for shown in _carried_out(database, group, actor, reason)]
        # Last, since a repaired job was counted as a move or was not counted at all.
        if not any(map(counts_wrongly, done)):
            database.undo_if_refused(database.count_finished)
        return done
    return [step.shown for group in groups for step in group]


def _carried_out(database: RepairDatabase, group: Group, actor: str, reason: str) -> Iterator[RepairStep]:
    def work() -> None:
        for step in group:
            if step.line is None or step.act is None:
                continue
            if step.line.entity == "sequence":
                # It may be the one that numbers the lines of the log.
                step.act(database)
                database.log(step.line, actor, reason)
            else:
                database.log(step.line, actor, reason)
                step.act(database)

    refused = database.undo_if_refused(work)
    for step in group:
        shown = step.shown
        if refused is not None and shown.can:
            why = f"refused by the database: {refused}"
            shown = RepairStep(shown.invariant, shown.entity, shown.entity_id, why, can=False)
        yield shown
