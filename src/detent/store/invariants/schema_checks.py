"""The invariants about the schema itself: a database has what this release would install, and rows fit its CHECKs.

The queries are put together when they are needed, from the migrations and the installed parts; nothing is kept twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import md5

from detent.store.installed_release import fingerprint, this_release
from detent.store.invariants.check_conditions import checks_sql
from detent.store.invariants.postgres_definitions import (
    CANONICAL,
    Constraint,
    condition_digest,
    digest,
    index_digest,
    postgres_columns,
    postgres_constraints,
    postgres_indexes,
)
from detent.store.invariants.schema_queries import (
    CHECKS,
    CONSTRAINTS_POSTGRES,
    DEFINITIONS_POSTGRES,
    DEFINITIONS_SQLITE,
    GUARDS_POSTGRES,
    SCHEMA_SQLITE,
)
from detent.store.lifecycle_sql import literal
from detent.store.sql_files import Dialect

__all__ = ["constraints_query", "guards_query", "schema_checks"]

_INDEX_TEXT = CANONICAL.format(definition="split_part(pg_get_indexdef(x.indexrelid), ' ON ', 2)")


def schema_checks(dialect: Dialect) -> dict[str, str]:
    """Return the query of every such invariant, by name."""
    return {
        "checks_hold": CHECKS.format(checks=checks_sql(dialect)),
        **(_postgres() if dialect == "postgres" else _sqlite()),
    }


def guards_query() -> str:
    """Return the query for triggers, and functions that they call, that are not those of this release on PostgreSQL."""
    from detent.store.postgres.installed_parts import guard_functions, triggers

    # md5 is what PostgreSQL offers without an extension; it tells edits apart and proves nothing against malice.
    bodies = [
        (one.name, md5(one.body.encode(), usedforsecurity=False).hexdigest()) for one in guard_functions().values()
    ]
    return GUARDS_POSTGRES.format(
        triggers=_values(
            (one.name, one.table, one.function, one.kind, ",".join(one.columns), condition_digest(one))
            for one in triggers().values()
        ),
        functions=_values(bodies),
        condition_text=CANONICAL.format(
            definition="substring(pg_get_triggerdef(t.oid) from ' WHEN \\((.*)\\) EXECUTE FUNCTION')"
        ),
    )


def constraints_query(constraints: Mapping[str, Constraint]) -> str:
    """Return the query for those of these constraints that a PostgreSQL database does not have, or does not enforce."""
    return CONSTRAINTS_POSTGRES.format(
        constraints=_values((one.name, one.table, one.kind, digest(one)) for one in constraints.values()),
        constraint_text=CANONICAL.format(definition="pg_get_constraintdef(c.oid)"),
        index_text=_INDEX_TEXT,
    )


def _postgres() -> dict[str, str]:
    from detent.store.postgres.installed_parts import body_digests, triggers, views

    return {
        "guards_are_in_place": guards_query(),
        "constraints_are_in_place": constraints_query(postgres_constraints()),
        "definitions_are_in_place": DEFINITIONS_POSTGRES.format(
            indexes=_values((name, index_digest(statement)) for name, statement in postgres_indexes().items()),
            index_text=_INDEX_TEXT,
            columns=_values((table, name, *what) for (table, name), what in postgres_columns().items()),
            default_text=CANONICAL.format(definition="coalesce(pg_get_expr(d.adbin, d.adrelid), '')"),
            views=_values((name,) for name in views()),
            triggers=_values((name,) for name in triggers()),
            functions=_values(body_digests().items()),
            release=literal(this_release()),
            fingerprint=literal(fingerprint("postgres")),
        ),
    }


def _sqlite() -> dict[str, str]:
    from detent.store.sqlite.installed_parts import expected_schema

    guards, tables, others = [], [], []
    for (kind, name), text in expected_schema().items():
        if kind == "trigger":
            guards.append((kind, name, text))
        elif kind == "table" or text.startswith("CREATE UNIQUE"):
            tables.append((kind, name, text))
        else:
            others.append((kind, name, text))
    return {
        "guards_are_in_place": SCHEMA_SQLITE.format(
            what="L2, E1, G4, R3: every guard is there, byte for byte; one that was dropped or changed is found.",
            expected=_values(guards),
        ),
        "constraints_are_in_place": SCHEMA_SQLITE.format(
            what="C1, J3, R3: every table with its CHECKs and every unique index is there, byte for byte.",
            expected=_values(tables),
        ),
        "definitions_are_in_place": DEFINITIONS_SQLITE.format(
            expected=_values(others), triggers=_values((name,) for _, name, _ in guards)
        ),
    }


def _values(rows: Iterable[tuple[str | int | bool, ...]]) -> str:
    """Return rows for VALUES, one a line."""
    return ",\n    ".join(f"({', '.join(_value(value) for value in row)})" for row in rows)


def _value(value: str | int | bool) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case str():
            return literal(value)
