"""The guards of a user's own table: triggers that refuse every move that its lifecycle does not declare."""

from __future__ import annotations

from detent.errors import InvalidInput
from detent.lifecycle.definition import Lifecycle
from detent.store.lifecycle_sql import either, literal
from detent.store.sql_files import Dialect

__all__ = ["entity_guards", "quoted", "undeclared_states"]

# The guard is called only if the state or the id changes. The condition compares the columns as text, byte by byte, and
# does not depend on which columns the UPDATE names: a trigger of the user's own may have changed them.
_POSTGRES = """\
CREATE OR REPLACE TRIGGER {trigger}_guard BEFORE UPDATE ON {table}
  FOR EACH ROW WHEN (OLD.{state}::text COLLATE "C" IS DISTINCT FROM NEW.{state}::text COLLATE "C"
    OR OLD.{id}::text COLLATE "C" IS DISTINCT FROM NEW.{id}::text COLLATE "C")
  EXECUTE FUNCTION detent.entity_guard({name}, {id_literal}, {state_literal}, {initial}, {pairs_literal});
CREATE OR REPLACE TRIGGER {trigger}_begins BEFORE INSERT ON {table}
  FOR EACH ROW EXECUTE FUNCTION detent.entity_guard({name}, {id_literal}, {state_literal}, {initial}, {pairs_literal});
"""

_SQLITE = """\
DROP TRIGGER IF EXISTS {trigger}_guard;
CREATE TRIGGER {trigger}_guard BEFORE UPDATE OF {state} ON {table} FOR EACH ROW WHEN OLD.{state} IS NOT NEW.{state}
BEGIN
  SELECT CASE
    WHEN ({pairs}) IS NOT TRUE THEN RAISE(ABORT, 'DT002 this entity cannot go from its state to that one')
    WHEN EXISTS (
      SELECT 1 FROM (SELECT from_state, to_state FROM detent_transition_log
                      WHERE job_id IS NULL AND entity = {name} AND entity_id = CAST(OLD.{id} AS TEXT)
                      ORDER BY n DESC LIMIT 1) last
       WHERE last.from_state = OLD.{state} AND last.to_state = NEW.{state})
      THEN NULL
    ELSE RAISE(ABORT, 'DT041 this move is made only together with its line in transition_log')
  END;
END;
DROP TRIGGER IF EXISTS {trigger}_frozen;
CREATE TRIGGER {trigger}_frozen BEFORE UPDATE OF {id} ON {table} FOR EACH ROW WHEN OLD.{id} IS NOT NEW.{id}
BEGIN
  SELECT RAISE(ABORT, 'DT041 the id of this entity is written once');
END;
DROP TRIGGER IF EXISTS {trigger}_begins;
CREATE TRIGGER {trigger}_begins BEFORE INSERT ON {table} FOR EACH ROW
  WHEN NEW.{state} IS NOT {initial} OR EXISTS (SELECT 1 FROM {table} WHERE {id} = NEW.{id})
BEGIN
  SELECT RAISE(ABORT, 'DT002 this entity must begin once, in its initial state');
END;
DROP TRIGGER IF EXISTS {trigger}_record;
CREATE TRIGGER {trigger}_record AFTER INSERT ON {table} FOR EACH ROW
BEGIN
  INSERT INTO detent_transition_log (entity, entity_id, from_state, to_state, trigger, actor, at)
    VALUES ({name}, CAST(NEW.{id} AS TEXT), NULL, {initial}, 'create', 'database',
            CAST(strftime('%s', 'now') AS INTEGER) * 1000000
              + CAST(substr(strftime('%f', 'now'), 4) AS INTEGER) * 1000);
END;
"""


def entity_guards(dialect: Dialect, lifecycle: Lifecycle, table: str, id_column: str, state_column: str) -> str:
    """Return the statements that guard a user's table: it moves only as declared and logged, begins only in its initial
    state, and its beginning is on record. The statements may be run again.

    A name that cannot be quoted raises `InvalidInput`.
    """
    name = lifecycle.name
    fill = {
        "trigger": f"detent_{name}",
        "name": literal(name),
        "table": quoted(table),
        "id": quoted(id_column),
        "state": quoted(state_column),
        "id_literal": literal(id_column),
        "state_literal": literal(state_column),
        "initial": literal(lifecycle.initial),
        "pairs_literal": literal(",".join(f"{source}>{target}" for source, target in lifecycle.pairs)),
        "pairs": either(lifecycle.pairs, quoted(state_column)),
    }
    return (_POSTGRES if dialect == "postgres" else _SQLITE).format(**fill)


def undeclared_states(lifecycle: Lifecycle, table: str, id_column: str, state_column: str) -> str:
    """Return the query for rows of a user's table whose state is not declared, for either database: each such state,
    the number of rows in it, and the id of one."""
    # As text, whatever type the columns have.
    state, some_id = (f"CAST({quoted(column)} AS TEXT)" for column in (state_column, id_column))
    known = ", ".join(map(literal, lifecycle.states))
    return (
        f"SELECT {state}, count(*), min({some_id}) FROM {quoted(table)}"
        f" WHERE {state} IS NULL OR {state} NOT IN ({known}) GROUP BY 1 ORDER BY 2 DESC, 1"
    )


def quoted(name: str) -> str:
    """Return an SQL identifier, possibly qualified by dots. A name that no database accepts raises `InvalidInput`."""
    parts = name.split(".")
    if not all(parts) or any("\x00" in part or len(part.encode()) > 63 for part in parts):
        raise InvalidInput("table or column name", repr(name), "one to 63 bytes, no NUL, parts joined by dots")
    return ".".join('"' + part.replace('"', '""') + '"' for part in parts)
