"""A lifecycle as a user would write it, and a way to spoil it in one place."""

from __future__ import annotations

from typing import Any

from detent.lifecycle.definition import Fold, Lifecycle, Transition

PLACED_PAID = Transition("placed", "paid", "pay", "gateway", "The money has come.")
PAID_SENT = Transition("paid", "sent", "send", "warehouse", "The parcel has left.")
PLACED_DROPPED = Transition("placed", "dropped", "drop", "customer", "The customer changed their mind.")

STATES = {
    "placed": "The customer has ordered.",
    "paid": "The money is there.",
    "sent": "On its way.",
    "dropped": "Nobody wants it any more.",
}

GOOD: dict[str, Any] = {
    "name": "order",
    "states": STATES,
    "initial": "placed",
    "final": frozenset({"sent", "dropped"}),
    "transitions": (PLACED_PAID, PAID_SENT, PLACED_DROPPED),
}


def order(**spoiled: Any) -> Lifecycle:
    """The order's lifecycle with the given parts replaced."""
    return Lifecycle(**(GOOD | spoiled))


def folded(*folds: Fold, **spoiled: Any) -> Lifecycle:
    """A machine with an ordinary path a → b → c that can be taken in one write, and the logged way a → c → d."""

    def step(source: str, target: str, **more: Any) -> Transition:
        return Transition(source, target, f"{source}_{target}", "machine", "It goes on.", **more)

    parts: dict[str, Any] = {
        "name": "machine",
        "states": {name: f"Position {name}." for name in "abcd"},
        "initial": "a",
        "final": frozenset({"d"}),
        "transitions": (
            step("a", "b", record="execution"),
            step("b", "c", record="execution", folded=True),
            step("b", "a", record="execution"),
            step("c", "d"),
        ),
        "folds": folds or (Fold(("a", "b", "c"), "rush", "Two steps at once."),),
    }
    return Lifecycle(**(parts | spoiled))
