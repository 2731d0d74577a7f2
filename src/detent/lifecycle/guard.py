"""From a lifecycle to the triggers that make the database refuse what it does not declare.

`job_guards` gives the text of migration 0002 for each database; the committed file is kept equal by a test, and
`python -m detent.lifecycle.guard` writes it. `entity_guards` gives the triggers for a user's own table.

The ordinary path costs a comparison only: the WHEN clause lets it through, commonest first. Everything else reaches the
trigger's body, which lets a move through that has its line in the log, newest of its entity and written for this very
pair and attempt, and refuses the rest. A refusal's text begins with the SQLSTATE that `errors.TABLE` knows.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal

from detent.errors import InvalidInput
from detent.lifecycle.declare import Lifecycle, Pair
from detent.lifecycle.guard_text import (
    ENTITY_POSTGRES,
    ENTITY_SQLITE,
    HEADER,
    JOB_POSTGRES,
    JOB_SQLITE,
    KEEP_POSTGRES,
    KEEP_SQLITE,
    KEEP_SQLITE_LOG,
)
from detent.lifecycle.library import JOB

__all__ = ["Dialect", "entity_guards", "held_goes_to", "job_guards", "quoted", "undeclared_states", "write_out"]

Dialect = Literal["postgres", "sqlite"]

# What an UPDATE may do to the rest of the row while it takes the ordinary path.
_CLAIM = "NEW.ended = OLD.ended AND NEW.spared = OLD.spared AND NEW.committed_at IS NULL AND NEW.started_at IS NULL"
_HELD = (
    "NEW.attempt = OLD.attempt AND NEW.lease_id = OLD.lease_id AND NEW.leased_at = OLD.leased_at"
    " AND NEW.spared >= OLD.spared"
    " AND (OLD.started_at IS NULL OR NEW.started_at = OLD.started_at)"
    " AND (OLD.committed_at IS NULL OR NEW.committed_at = OLD.committed_at)"
)
_FROZEN = (
    "id",
    "tenant",
    "task",
    "payload",
    "run_id",
    "nonce",
    "created_at",
    "attempts_max",
    "dead_letter",
    "idempotent",
)
_APPEND_ONLY_OF_JOB = ("execution", "event")
_APPEND_ONLY_FOR_EVER = ("horizon", "migration")
# SQLite's REPLACE deletes, without asking, whatever stands in the way of any unique key: so each key is asked before.
# The plus keeps it from looking through two indexes and joining what they say: an attempt or two is read faster.
_UNIQUE = {
    "execution": (
        "job_id = NEW.job_id"
        " AND (+attempt = NEW.attempt OR (committed_at IS NOT NULL AND NEW.committed_at IS NOT NULL))",
    ),
    "event": ("job_id = NEW.job_id AND seq = NEW.seq", "job_id = NEW.job_id AND key IS NOT NULL AND key = NEW.key"),
    "horizon": ("n = NEW.n",),
    "migration": ("version = NEW.version",),
}


def job_guards(dialect: Dialect, lifecycle: Lifecycle = JOB) -> str:
    """The guards of the record's own tables, as the text of a migration."""
    unequal = "IS DISTINCT FROM" if dialect == "postgres" else "IS NOT"
    fill = {
        "ordinary": _ordinary(lifecycle),
        "logged": _either(lifecycle.logged_pairs()),
        "initial": lifecycle.initial,
        "at_rest": _listed(sorted(lifecycle.rests)),
        "frozen": ", ".join(_FROZEN),
        "thawed": " OR ".join(f"NEW.{column} {unequal} OLD.{column}" for column in _FROZEN),
    }
    job, keep = (JOB_POSTGRES, KEEP_POSTGRES) if dialect == "postgres" else (JOB_SQLITE, KEEP_SQLITE)
    parts = [HEADER.format(name=lifecycle.name, version=lifecycle.version), job.format(**fill)]
    of_job = "NOT EXISTS (SELECT 1 FROM detent_job WHERE id = OLD.job_id)"
    if dialect == "postgres":
        parts += [
            keep.format(table=table) for table in (*_APPEND_ONLY_OF_JOB, "transition_log", *_APPEND_ONLY_FOR_EVER)
        ]
    else:
        parts += [keep.format(table=table, there=_there(table), unless=of_job) for table in _APPEND_ONLY_OF_JOB]
        parts += [KEEP_SQLITE_LOG.format(unless=f"OLD.job_id IS NOT NULL AND {of_job}")]
        parts += [keep.format(table=table, there=_there(table), unless="FALSE") for table in _APPEND_ONLY_FOR_EVER]
    return "\n".join(parts)


def entity_guards(dialect: Dialect, lifecycle: Lifecycle, table: str, id_column: str, state_column: str) -> str:
    """The guards and the record for a user's own table: moves only as declared and logged, beginnings only as declared
    and put on record. May be run again. Refuses names that cannot be quoted with `InvalidInput`."""
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
        "pairs": _either(lifecycle.pairs, quoted(state_column)),
    }
    return (ENTITY_POSTGRES if dialect == "postgres" else ENTITY_SQLITE).format(**fill)


def undeclared_states(lifecycle: Lifecycle, table: str, id_column: str, state_column: str) -> str:
    """The question which rows of a user's own table are in states that are not declared, for either database: each such
    state, how many rows are in it, and the id of one."""
    # As text, whatever type they are of.
    state, some_id = (f"CAST({quoted(column)} AS TEXT)" for column in (state_column, id_column))
    known = ", ".join(map(literal, lifecycle.states))
    return (
        f"SELECT {state}, count(*), min({some_id}) FROM {quoted(table)}"
        f" WHERE {state} IS NULL OR {state} NOT IN ({known}) GROUP BY 1 ORDER BY 2 DESC, 1"
    )


def quoted(name: str) -> str:
    """An identifier for SQL, possibly qualified by dots; refuses what no database would take."""
    parts = name.split(".")
    if not all(parts) or any("\x00" in part or len(part.encode()) > 63 for part in parts):
        raise InvalidInput("table or column name", repr(name), "one to 63 bytes, no NUL, parts joined by dots")
    return ".".join('"' + part.replace('"', '""') + '"' for part in parts)


def literal(text: str) -> str:
    """A string for SQL."""
    return "'" + text.replace("'", "''") + "'"


def held_goes_to(lifecycle: Lifecycle = JOB) -> list[str]:
    """Where a held attempt may take its job on the ordinary path, commonest first."""
    return [*(target for source, target in lifecycle.ordinary_pairs() if source == "running"), "running"]


def _ordinary(lifecycle: Lifecycle) -> str:
    """The WHEN of the ordinary path: ends and progress of a held attempt first, then claims."""
    claims = [pair for pair in lifecycle.ordinary_pairs() if pair[1] == "running"]
    # An OR chain, commonest first: an IN list would make SQLite build a table for every row.
    to = " OR ".join(f"NEW.state = '{target}'" for target in held_goes_to(lifecycle))
    ways = [f"OLD.state = 'running' AND ({to}) AND {_HELD}"]
    ways += [f"OLD.state = '{source}' AND NEW.state = '{target}' AND {_CLAIM}" for source, target in claims]
    return "\n   OR ".join(f"({way})" for way in ways)


def _either(pairs: tuple[Pair, ...], column: str = "state") -> str:
    return " OR ".join(f"(OLD.{column} = '{source}' AND NEW.{column} = '{target}')" for source, target in pairs)


def _there(table: str) -> str:
    found = [f"EXISTS (SELECT 1 FROM detent_{table} WHERE {condition})" for condition in _UNIQUE[table]]
    return "\n    OR ".join(found)


def _listed(names: list[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)


def write_out(step: str, text: Callable[[Dialect], str]) -> None:
    """Put the text of a generated migration where it lies, for each database."""
    dialects: tuple[Dialect, ...] = ("postgres", "sqlite")
    for dialect in dialects:
        [file] = (Path(__file__).parents[1] / "store" / dialect / "schema").glob(f"[0-9]*[0-9]_{step}.sql")
        file.write_text(text(dialect), encoding="utf-8")


if __name__ == "__main__":
    write_out("guards", job_guards)
