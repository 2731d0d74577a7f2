"""Rules of entities for both databases: which lifecycles may be attached to a table, and which move a trigger makes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from detent.errors import DetentError, InvalidInput, InvalidTransition, LifecycleTooOld, NotFound, UnknownState
from detent.lifecycle.definition import Lifecycle, Pair
from detent.lifecycle.library import OWN_NAMES
from detent.model.records import Moved

__all__ = ["check_name", "decide", "refuse_older", "refuse_undeclared"]

_STATES_SHOWN_MAX = 5


def check_name(lifecycle: Lifecycle) -> None:
    """Refuse a lifecycle under the name of an entity of Detent's own with `InvalidInput`: it could write lines into the
    record of that entity."""
    if lifecycle.name in OWN_NAMES:
        raise InvalidInput("lifecycle", f"the name {lifecycle.name!r}, which is Detent's own", "a name of your own")


def refuse_older(database: str, lifecycle: Lifecycle, found: int | None) -> None:
    """Refuse a lifecycle that is older than the version `found` in the database, if any, with `LifecycleTooOld`."""
    if found is not None and found > lifecycle.version:
        raise LifecycleTooOld(database, "nothing was changed", lifecycle.name, found, lifecycle.version)


def refuse_undeclared(database: str, lifecycle: Lifecycle, found: Sequence[tuple[Any, ...]]) -> None:
    """Raise `UnknownState` if there are rows in states that are not declared: each a state, the number of rows, and the
    id of one. Guards would never let such rows move, so they are checked first."""
    if not found:
        return
    rows = sum(count for _, count, _ in found)
    shown = ", ".join(f"{state!r} ({count})" for state, count, _ in found[:_STATES_SHOWN_MAX])
    more = ", …" if len(found) > _STATES_SHOWN_MAX else ""
    detail = f"{rows} rows are in states that are not declared: {shown}{more}; nothing was changed"
    state, _, some_id = found[0]
    raise UnknownState(database, detail, lifecycle.name, str(some_id), str(state), tuple(lifecycle.states))


def decide(
    database: str, lifecycle: Lifecycle, entity_id: str, found: Sequence[str], trigger: str
) -> Pair | Moved | DetentError:
    """Return the move that a trigger makes of an entity: from and to. `found` are the states of its rows; the first
    counts. Otherwise return the answer: no move needed, `NotFound`, `UnknownState` or `InvalidTransition`. Raises
    `InvalidInput`."""
    check_name(lifecycle)
    if not found:
        return NotFound(lifecycle.name, entity_id)
    state = found[0]
    if state not in lifecycle.states:
        known = tuple(lifecycle.states)
        return UnknownState(database, "nothing was changed", lifecycle.name, entity_id, state, known)
    ways = lifecycle.by_trigger(state, trigger)
    if not ways:
        return _no_way(lifecycle, entity_id, state, trigger)
    to_state = ways[0].target
    return Moved(entity_id, state, False) if to_state == state else (state, to_state)


def _no_way(lifecycle: Lifecycle, entity_id: str, state: str, trigger: str) -> Moved | InvalidTransition:
    """Answer that no move is needed if the trigger leads to this state from another; otherwise refuse."""
    targets = [way.target for way in lifecycle.transitions if way.trigger == trigger]
    if state in targets:
        return Moved(entity_id, state, False)
    to_state = targets[0] if targets else trigger
    return InvalidTransition(lifecycle.name, entity_id, state, to_state, lifecycle.allowed(state))
