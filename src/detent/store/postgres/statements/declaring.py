"""The verbs of what is declared in code."""

from __future__ import annotations

from detent.model.service_records import DeclarationRow, Declared, DeclaredKind
from detent.store.postgres.statement import Statement, named

__all__ = ["declaration_list", "declaration_put"]

_FIELDS = DeclarationRow.__struct_fields__


def declaration_put(kind: DeclaredKind, name: str, fingerprint: str, again: bool) -> Statement[Declared]:
    """Whether it counts from now on."""
    sql = "SELECT detent.declaration_put_v1(%s::text, %s::text, %s::text, %s::boolean)"
    return Statement(sql, (kind, name, fingerprint, again), lambda rows: rows[0][0])


def declaration_list() -> Statement[list[DeclarationRow]]:
    """By kind and name."""
    sql = f"SELECT {', '.join(_FIELDS)} FROM detent.declaration_list_v1()"
    return Statement(sql, (), lambda rows: [DeclarationRow(**named(_FIELDS, row)) for row in rows], writes=False)
