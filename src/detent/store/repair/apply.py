"""Repair: show the plan, or carry it out."""

from __future__ import annotations

from collections.abc import Iterator

from detent.errors import InvalidInput
from detent.model.records import RepairStep
from detent.store.repair.database import RepairDatabase
from detent.store.repair.plan import Group, counts_wrongly, plan

__all__ = ["repair"]


def repair(database: RepairDatabase, actor: str, reason: str, *, apply: bool) -> list[RepairStep]:
    """Return the plan; with `apply`, carry it out and return the result.

    Each step is recorded in the log. The steps of one job are applied together or not at all; a step that the database
    refuses is returned with `can` False. An empty actor or reason raises `InvalidInput`.
    """
    for field, value in (("actor", actor), ("reason", reason)):
        if not value.strip():
            raise InvalidInput(field, repr(value), "a text that says who repairs, and why")
    groups = list(plan(database))
    if apply and any(step.act for group in groups for step in group):
        database.lock_out_writers()
        groups = list(plan(database))  # again: rows may have changed until the lock was taken
        done = [shown for group in groups for shown in _carried_out(database, group, actor, reason)]
        # Last, because repaired rows were counted as moves or were not counted at all.
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
                # It may be the sequence that numbers the lines of the log.
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
