"""Moving a user's own entity: the row with the caller's rights, its record by the engine."""

from __future__ import annotations

from detent.errors import DetentError, TransitionRace
from detent.lifecycle.declare import Lifecycle
from detent.model.records import Moved
from detent.store.attaching import decide
from detent.store.postgres.driver.session import Session
from detent.store.postgres.statements.base import Statement
from detent.store.postgres.statements.moving import entity_log

__all__ = ["move"]


def move(
    session: Session,
    database: str,
    lifecycle: Lifecycle,
    names: tuple[str, str, str],
    entity_id: str,
    trigger: str,
    told: tuple[str, str | None, str | None],
) -> Moved | DetentError:
    """Look (and lock), log, move. `names` are table, id and state column; `told` is who, why and metadata.

    The statements are made of quoted names only; every value is a parameter.
    """
    from detent.store.entity_guards import quoted

    table, id_column, state_column = (quoted(name).replace("%", "%%") for name in names)
    look = f"SELECT {state_column}::text FROM {table} WHERE {id_column} = %s FOR UPDATE"
    found = session.run(Statement(look, (entity_id,), lambda rows: [str(row[0]) for row in rows]))
    decided = decide(database, lifecycle, entity_id, found, trigger)
    if not isinstance(decided, tuple):
        return decided
    state, to_state = decided
    session.run(entity_log(lifecycle.name, entity_id, state, to_state, trigger, *told))
    change = f"UPDATE {table} SET {state_column} = %s WHERE {id_column} = %s AND {state_column} = %s RETURNING 1"
    if session.run(Statement(change, (to_state, entity_id, state), len)) != 1:
        raise TransitionRace(lifecycle.name, entity_id, state, "another state, or more than one row of this id")
    return Moved(entity_id, to_state, True)
