"""The schema `ops`: ops runs as functions and views for any language. It is put in place with the functions."""

from __future__ import annotations

from detent.store.postgres.driver.connection import Connection
from detent.store.texts import texts

__all__ = ["facade", "is_ours"]

_NOT_FOR_ALL = "REVOKE ALL ON ALL FUNCTIONS IN SCHEMA ops FROM PUBLIC;\n"
_IS_OURS = """
SELECT coalesce((
  SELECT pg_has_role(n.nspowner, 'USAGE') AND coalesce(obj_description(n.oid, 'pg_namespace') LIKE 'Detent:%', false)
    FROM pg_namespace n WHERE n.nspname = 'ops'), has_database_privilege(current_database(), 'CREATE'))
"""


def facade() -> tuple[str, ...]:
    """Its text, in the order in which it is put in place; may be run again."""
    return (*(text for _, text in texts("postgres/ops")), _NOT_FOR_ALL)


def is_ours(connection: Connection) -> bool:
    """Whether the schema is Detent's, or may become so. One of somebody else's is left alone, and so is a database in
    which this login may make none."""
    row = connection.execute(_IS_OURS).fetchone()
    return bool(row and row[0])
