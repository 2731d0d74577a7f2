"""Looking at limits."""

from __future__ import annotations

from detent.model.records import TransitionRow
from detent.store.contract import Verbs

__all__ = ["paused_by"]


def paused_by(verbs: Verbs, key: str) -> TransitionRow | None:
    """The line on record of who paused a limit by hand last, and why; None where nobody ever did."""
    moves = verbs.transitions("limit", key)
    return next((move for move in reversed(moves) if move.to_state == "paused"), None)
