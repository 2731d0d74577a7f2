"""How much space the schema takes in PostgreSQL, and what keeps the server from cleaning it up."""

from __future__ import annotations

from detent.model.database_facts import OpenTransaction, Space, TableRows
from detent.store.postgres.driver.connection import Connection

__all__ = ["space"]

_TABLES_MAX = 10
_BYTES = """
SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'detent' AND c.relkind = 'r'
"""
_ROWS = f"""
SELECT relname, n_live_tup, n_dead_tup FROM pg_stat_user_tables
 WHERE schemaname = 'detent' AND n_dead_tup > 0 ORDER BY n_dead_tup DESC LIMIT {_TABLES_MAX}
"""
_OLDEST = """
SELECT who, extract(epoch FROM clock_timestamp() - since)::float8
  FROM (SELECT 'process ' || pid || coalesce(' (' || nullif(application_name, '') || ')', '') AS who,
               xact_start AS since
          FROM pg_stat_activity
         WHERE xact_start IS NOT NULL AND backend_type = 'client backend' AND pid <> pg_backend_pid()
           AND datname = current_database()
        UNION ALL
        SELECT 'prepared transaction ' || gid, prepared FROM pg_prepared_xacts WHERE database = current_database()) t
 ORDER BY since LIMIT 1
"""


def space(connection: Connection) -> Space:
    """Return the space of the schema. A login without `pg_read_all_stats` sees its own transactions only."""
    ((used,),) = connection.execute(_BYTES).fetchall()
    tables = [TableRows(name=name, live=live, dead=dead) for name, live, dead in connection.execute(_ROWS).fetchall()]
    oldest = [OpenTransaction(who=who, seconds=seconds) for who, seconds in connection.execute(_OLDEST).fetchall()]
    return Space(bytes=used, tables=tuple(tables), oldest=oldest[0] if oldest else None)
