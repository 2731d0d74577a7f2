"""Repair: bring the projections back to what the records say (R3).

The plan (`repair_plan`) is shown, or carried out: each step with its line in the log, the steps of one job together or
not at all. The databases lend the `Hands`: the same few statements each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

from detent.errors import InvalidInput
from detent.model.records import RepairStep
from detent.store.repair_plan import Actions, Group, Look, counts_wrongly, plan

__all__ = ["Hands", "repair"]


class Hands(Look, Actions, Protocol):
    """What repair asks of a database, inside one transaction."""

    def hold_still(self) -> None:
        """Keep everybody else from writing until the end of the transaction."""
        ...

    def unless_refused(self, work: Callable[[], None]) -> str | None:
        """Do the work whole or not at all; the database's words where a guard or constraint refused it."""
        ...


def repair(hands: Hands, actor: str, reason: str, *, apply: bool) -> list[RepairStep]:
    """The plan; with `apply`, what became of it. What the database refused all the same comes back with `can` False.

    Refuses an empty actor or reason with `InvalidInput`: every repair is on record with both.
    """
    for field, value in (("actor", actor), ("reason", reason)):
        if not value.strip():
            raise InvalidInput(field, repr(value), "a text that says who repairs, and why")
    groups = list(plan(hands))
    if apply and any(step.act for group in groups for step in group):
        hands.hold_still()
        groups = list(plan(hands))  # anew: what was seen before may have moved until everybody stood still
        done = [shown for group in groups for shown in _carried_out(hands, group, actor, reason)]
        # Last, since what was mended was counted as a move or was not counted at all.
        if not any(map(counts_wrongly, done)):
            hands.unless_refused(hands.count_finished)
        return done
    return [step.shown for group in groups for step in group]


def _carried_out(hands: Hands, group: Group, actor: str, reason: str) -> Iterator[RepairStep]:
    def work() -> None:
        for step in group:
            if step.line is None or step.act is None:
                continue
            if step.line.entity == "sequence":
                # It may be the one that numbers the lines of the log.
                step.act(hands)
                hands.log(step.line, actor, reason)
            else:
                hands.log(step.line, actor, reason)
                step.act(hands)

    refused = hands.unless_refused(work)
    for step in group:
        shown = step.shown
        if refused is not None and shown.can:
            why = f"refused by the database: {refused}"
            shown = RepairStep(shown.invariant, shown.entity, shown.entity_id, why, can=False)
        yield shown
