"""The schema `ops` of PostgreSQL: ops runs as functions and views, for programs in any language."""

from __future__ import annotations

from detent.store.postgres.driver.connection import Connection
from detent.store.sql_files import sql_text

__all__ = ["is_ours", "ops_schema"]

_NOT_FOR_ALL = "REVOKE ALL ON ALL FUNCTIONS IN SCHEMA ops FROM PUBLIC;\n"
_IS_OURS = """
SELECT coalesce((
  SELECT pg_has_role(n.nspowner, 'USAGE') AND coalesce(obj_description(n.oid, 'pg_namespace') LIKE 'Detent:%', false)
    FROM pg_namespace n WHERE n.nspname = 'ops'), has_database_privilege(current_database(), 'CREATE'))
"""


def ops_schema() -> str:
    """Return the statements that make the schema. They can be run again."""
    return sql_text("ops/ops_schema.sql") + _NOT_FOR_ALL


def is_ours(connection: Connection) -> bool:
    """Return whether the schema is Detent's, or this login may make it. A schema of another owner is left alone."""
    row = connection.execute(_IS_OURS).fetchone()
    return bool(row and row[0])
