"""Writes the invariants that follow from the lifecycle and the schema; a test keeps the committed files equal.

`python -m detent.store.invariants.generate` does it.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import md5
from pathlib import Path

from detent.lifecycle.guard import literal
from detent.lifecycle.library import JOB
from detent.model.records import OUTCOMES
from detent.store.invariants import Dialect
from detent.store.invariants.checks import checks_sql
from detent.store.invariants.definitions import (
    CANONICAL,
    condition_digest,
    digest,
    index_digest,
    postgres_columns,
    postgres_indexes,
    postgres_view_queries,
    sqlite_definitions,
)
from detent.store.invariants.expected import (
    postgres_constraints,
    postgres_functions,
    postgres_triggers,
    sqlite_schema,
)
from detent.store.invariants.text import (
    CHECKS,
    CONSTRAINTS_POSTGRES,
    DEFINITIONS_POSTGRES,
    DEFINITIONS_SQLITE,
    GUARDS_POSTGRES,
    MOVES,
    SCHEMA_SQLITE,
    STATES,
)

__all__ = ["generated"]


def generated(dialect: Dialect) -> dict[str, str]:
    """The text of every generated invariant, by name."""
    prefix = "detent." if dialect == "postgres" else "detent_"
    return {
        "states_are_known": STATES.format(
            p=prefix,
            states=_listed(JOB.states),
            outcomes=_listed(OUTCOMES),
            ends=_listed(state for state in JOB.states if state != "running"),
        ),
        "log_moves_are_declared": MOVES.format(
            p=prefix,
            moves=_values((t.source, t.target, t.trigger) for t in JOB.transitions if t.record == "log"),
            states=_listed(JOB.states),
            yes="true" if dialect == "postgres" else "1",
        ),
        "checks_hold": CHECKS.format(checks=checks_sql(dialect)),
        **(_schema_postgres() if dialect == "postgres" else _schema_sqlite()),
    }


def _schema_postgres() -> dict[str, str]:
    triggers = [
        (t.name, t.table, t.function, t.kind, ",".join(t.columns), condition_digest(t))
        for t in postgres_triggers().values()
    ]
    # md5 is what PostgreSQL can say without an extension; it tells edits apart and proves nothing against malice.
    functions = [
        (f.name, md5(f.body.encode(), usedforsecurity=False).hexdigest()) for f in postgres_functions().values()
    ]
    constraints = [(c.name, c.table, c.kind, digest(c)) for c in postgres_constraints().values()]
    return {
        "guards_are_in_place": GUARDS_POSTGRES.format(
            triggers=_values(triggers),
            functions=_values(functions),
            condition_text=CANONICAL.format(
                definition="substring(pg_get_triggerdef(t.oid) from ' WHEN \\((.*)\\) EXECUTE FUNCTION')"
            ),
        ),
        "constraints_are_in_place": CONSTRAINTS_POSTGRES.format(
            constraints=_values(constraints),
            constraint_text=CANONICAL.format(definition="pg_get_constraintdef(c.oid)"),
            index_text=CANONICAL.format(definition="split_part(pg_get_indexdef(x.indexrelid), ' ON ', 2)"),
        ),
        "definitions_are_in_place": DEFINITIONS_POSTGRES.format(
            indexes=_values((name, index_digest(statement)) for name, statement in postgres_indexes().items()),
            index_text=CANONICAL.format(definition="split_part(pg_get_indexdef(x.indexrelid), ' ON ', 2)"),
            columns=_columns(),
            default_text=CANONICAL.format(definition="coalesce(pg_get_expr(d.adbin, d.adrelid), '')"),
            views=_values((name,) for name in postgres_view_queries()),
            triggers=_values((name,) for name in postgres_triggers()),
        ),
    }


def _schema_sqlite() -> dict[str, str]:
    guards = [(kind, name, text) for (kind, name), text in sqlite_schema().items() if kind == "trigger"]
    tables = [(kind, name, text) for (kind, name), text in sqlite_schema().items() if kind != "trigger"]
    return {
        "guards_are_in_place": SCHEMA_SQLITE.format(
            what="L2, E1, G4, R3: every guard is there, letter for letter; one that was dropped or changed is found.",
            expected=_values(guards),
        ),
        "constraints_are_in_place": SCHEMA_SQLITE.format(
            what="C1, J3, R3: every table with its CHECKs and every unique index is there, letter for letter.",
            expected=_values(tables),
        ),
        "definitions_are_in_place": DEFINITIONS_SQLITE.format(
            expected=_values((kind, name, text) for (kind, name), text in sqlite_definitions().items()),
            triggers=_values((name,) for _, name, _ in guards),
        ),
    }


def _columns() -> str:
    """Rows for VALUES, one line for each table."""
    tables: dict[str, list[str]] = {}
    for (table, name), what in postgres_columns().items():
        tables.setdefault(table, []).append(f"({', '.join(_value(value) for value in (table, name, *what))})")
    return ",\n    ".join(", ".join(rows) for rows in tables.values())


def _listed(names: Iterable[str]) -> str:
    return ", ".join(literal(name) for name in names)


def _values(rows: Iterable[tuple[str | int | bool, ...]]) -> str:
    """Rows for VALUES, one a line."""
    return ",\n    ".join(f"({', '.join(_value(value) for value in row)})" for row in rows)


def _value(value: str | int | bool) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case str():
            return literal(value)


def _write() -> None:
    dialects: tuple[Dialect, ...] = ("postgres", "sqlite")
    for dialect in dialects:
        for name, text in generated(dialect).items():
            path = Path(__file__).parent / dialect / f"{name}.sql"
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)


if __name__ == "__main__":
    _write()
