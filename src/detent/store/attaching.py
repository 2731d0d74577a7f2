"""What is found in a user's own table before it comes under guards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from detent.errors import UnknownState
from detent.lifecycle.declare import Lifecycle

__all__ = ["refuse_undeclared"]

_STATES_SHOWN_MAX = 5


def refuse_undeclared(database: str, lifecycle: Lifecycle, found: Sequence[tuple[Any, ...]]) -> None:
    """`UnknownState` where anything was found: each a state that is not declared, how many rows are in it, and the id
    of one. Guards would hold such rows where they are for ever, so they are asked for first."""
    if not found:
        return
    rows = sum(count for _, count, _ in found)
    shown = ", ".join(f"{state!r} ({count})" for state, count, _ in found[:_STATES_SHOWN_MAX])
    more = ", …" if len(found) > _STATES_SHOWN_MAX else ""
    detail = f"{rows} rows are in states that are not declared: {shown}{more}; nothing was changed"
    state, _, some_id = found[0]
    raise UnknownState(database, detail, lifecycle.name, str(some_id), str(state), tuple(lifecycle.states))
