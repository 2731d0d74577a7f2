"""The SQL functions on the page are those of the database, with the role that may call each of them."""

from __future__ import annotations

from contextlib import closing

from detent.store.postgres.roles import INCLUDES
from detent.store.postgres.store import PostgresStore
from detent.testing.stores import plain_connection
from tests.docs.sql_page import functions
from tests.store.postgres.connections import run_sql

MAY_CALL = """
SELECT n.nspname, p.proname, (SELECT array_agg(a.name ORDER BY a.n) FROM unnest(p.proargnames, p.proargmodes)
                                WITH ORDINALITY AS a (name, mode, n) WHERE coalesce(a.mode, 'i') IN ('i', 'b')),
       ARRAY(SELECT r.role FROM unnest(%s::text[]) WITH ORDINALITY AS r (role, n)
              WHERE has_function_privilege('detent_' || r.role, p.oid, 'EXECUTE') ORDER BY r.n)
  FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
 WHERE n.nspname IN ('detent', 'ops')
"""


def test_the_page_has_every_function_that_a_role_may_call_and_no_other(postgres_ready_url: str) -> None:
    """Its parameters and its lowest role are those of the database."""
    with closing(PostgresStore(postgres_ready_url)) as store:
        store.install_roles()
    with closing(plain_connection(postgres_ready_url)) as connection:
        rows = connection.execute(MAY_CALL, [list(INCLUDES)]).fetchall()
    found = {f"{schema}.{name}": (roles[0], names or []) for schema, name, names, roles in rows if roles}
    written = {f"{one.schema}.{one.name}": one for one in functions()}
    assert sorted(found) == sorted(written)
    for name, (role, parameters) in found.items():
        assert written[name].role == role, name
        assert all(parameter in written[name].signature for parameter in parameters), name
    run_sql(postgres_ready_url, *(f"DROP OWNED BY detent_{role}" for role in INCLUDES))


def test_every_function_says_what_it_does() -> None:
    for one in functions():
        words = {"does"} if one.schema == "ops" else {"does", "takes", "gives", "locks", "refuses"}
        assert words <= set(one.says), one.name
