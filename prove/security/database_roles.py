"""Attacks of logins that hold one of Detent's roles on PostgreSQL, and nothing else."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from random import Random
from typing import Any

import psycopg

from detent.store.contract import CATALOGUE
from detent.store.postgres.roles import BESIDE, INCLUDES, OPS_FUNCTIONS, VIEWS
from detent.store.postgres.store import PostgresStore
from detent.testing.stores import dump, plain_connection
from prove.figure import Budget, Tally

__all__ = ["attack_database"]

_REFUSED = "42501"
_UNOWNED = {_REFUSED, "2BP01", "0LP01", "25001", "42704"}
_TABLES = """
SELECT n.nspname, c.relname, c.relkind FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE n.nspname IN ('detent', 'ops') AND c.relkind IN ('r', 'p', 'v', 'm', 'S') AND c.relname <> 'test_clock'
 ORDER BY 1, 2
"""
_FUNCTIONS = """
SELECT n.nspname, p.proname, p.oid::regprocedure::text, p.pronargs, p.prosecdef, p.proconfig,
       ARRAY(SELECT format_type(t, NULL) FROM unnest(p.proargtypes::oid[]) WITH ORDINALITY AS a (t, n) ORDER BY n)
  FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
 WHERE n.nspname IN ('detent', 'ops') AND p.prokind = 'f' AND p.prorettype <> 'trigger'::regtype ORDER BY 3
"""
_ON_TABLES = (
    "SELECT * FROM {} LIMIT 1",
    "INSERT INTO {} DEFAULT VALUES",
    "DELETE FROM {}",
    "TRUNCATE {} CASCADE",
    "DO $$ BEGIN LOCK TABLE {} IN ACCESS EXCLUSIVE MODE; END $$",
    "ALTER TABLE {} DISABLE TRIGGER ALL",
    "ALTER TABLE {} ADD COLUMN mine integer",
    "DROP TABLE {} CASCADE",
    "CREATE RULE mine AS ON INSERT TO {} DO INSTEAD NOTHING",
)
_ON_SEQUENCES = ("SELECT nextval('{}')", "SELECT setval('{}', 1)", "ALTER SEQUENCE {} RESTART", "DROP SEQUENCE {}")
_ANYWHERE = (
    "SET ROLE postgres",
    "SET SESSION AUTHORIZATION postgres",
    "SET session_replication_role = replica",
    "CREATE TABLE detent.mine (x integer)",
    "CREATE FUNCTION detent.mine() RETURNS integer LANGUAGE sql AS 'SELECT 1'",
    "CREATE FUNCTION ops.mine() RETURNS integer LANGUAGE sql AS 'SELECT 1'",
    "CREATE FUNCTION public.mine() RETURNS integer LANGUAGE sql AS 'SELECT 1'",
    "CREATE FUNCTION pg_catalog.mine() RETURNS integer LANGUAGE sql AS 'SELECT 1'",
    "CREATE SCHEMA mine",
    "DROP SCHEMA detent CASCADE",
    "ALTER SCHEMA detent RENAME TO theirs",
    "CREATE ROLE mine SUPERUSER",
    "GRANT postgres TO CURRENT_USER",
    "COPY (SELECT 1) TO PROGRAM 'id'",
    "SELECT pg_read_file('/etc/passwd')",
    "SELECT pg_ls_dir('.')",
    "SELECT lo_import('/etc/passwd')",
    "ALTER SYSTEM SET fsync = off",
    "SELECT rolpassword FROM pg_authid",
)
_FORGED = 999_999_999
_SHADOWS = (
    "CREATE TEMP TABLE job AS SELECT * FROM detent.job_get_v1('{{}}')",
    "INSERT INTO pg_temp.job (id) VALUES ({forged})",
    "CREATE TEMP TABLE queue (name text, paused boolean)",
    "CREATE TEMP TABLE token (id bigint, token_hash text, role text)",
    "CREATE FUNCTION pg_temp.clock() RETURNS timestamptz LANGUAGE sql AS $$ SELECT 'epoch'::timestamptz $$",
    "CREATE FUNCTION pg_temp.now() RETURNS timestamptz LANGUAGE sql AS $$ SELECT 'epoch'::timestamptz $$",
    "CREATE FUNCTION pg_temp.lower(text) RETURNS text LANGUAGE sql AS $$ SELECT 'mine' $$",
    "CREATE FUNCTION pg_temp.same(bigint, bigint) RETURNS boolean LANGUAGE sql AS 'SELECT true'",
    "CREATE OPERATOR pg_temp.= (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = pg_temp.same)",
    "SET search_path = pg_temp, detent, pg_catalog",
)
"""Things of the caller's own under names that Detent uses, in front of them."""


def attack_database(
    url: str, job_id: int, budget: Budget, random: Random, tally: Tally, share: float, roles: Iterable[str] = INCLUDES
) -> None:
    """Let a login of each role try what its role does not grant: this share of everything. Nothing may have changed
    then."""
    with closing(PostgresStore(url)) as store:
        store.install_roles()
    with closing(plain_connection(url)) as owner:
        owner.autocommit = True
        tables = owner.execute(_TABLES).fetchall()
        functions = owner.execute(_FUNCTIONS).fetchall()
        _look_at_definitions(functions, tally)
        before = dump(url)
        for role in roles:
            attempts = [*_on_tables(tables), *((text, _UNOWNED) for text in _ANYWHERE), *_on_functions(functions, role)]
            attempts += [(f"SET ROLE detent_{other}", {_REFUSED}) for other in INCLUDES if other != role]
            attempts += [(f"GRANT detent_{other} TO CURRENT_USER", {_REFUSED}) for other in INCLUDES]
            attempts = random.sample(attempts, max(1, int(len(attempts) * share)))
            with _login(owner, url, role) as connection:
                for text, states in attempts:
                    if budget.is_spent:
                        break
                    _try(connection, role, text, states, tally)
                _shadow(connection, role, job_id, tally)
        if (after := dump(url)) != before:
            changed = [name for name in before if before[name] != after.get(name)]
            tally.wrong += 1
            tally.stories.append(f"seed {budget.seed}: attacks have changed the tables {changed}")


@contextmanager
def _login(owner: Any, url: str, role: str) -> Iterator[psycopg.Connection[Any]]:
    name = f"prove_{role}_{secrets.token_hex(4)}"
    owner.execute(f"CREATE ROLE {name} LOGIN IN ROLE detent_{role}")
    try:
        with closing(psycopg.connect(psycopg.conninfo.make_conninfo(url, user=name), autocommit=True)) as connection:
            connection.execute("SET lock_timeout = '5s'")
            yield connection
    finally:
        owner.execute(f"DROP OWNED BY {name}")
        owner.execute(f"DROP ROLE {name}")


def _on_tables(tables: list[Any]) -> Iterator[tuple[str, set[str]]]:
    for schema, name, kind in tables:
        if kind == "S":
            yield from ((text.format(f"{schema}.{name}"), {_REFUSED}) for text in _ON_SEQUENCES)
            continue
        is_shown = kind == "v" and (name in VIEWS or schema == "ops")
        for text in _ON_TABLES:
            if is_shown and text.startswith("SELECT"):
                continue
            # A view refuses some of these from every role, because it is a view.
            yield text.format(f"{schema}.{name}"), {_REFUSED, *(("42809", "55000", "0A000") if kind == "v" else ())}


def _on_functions(functions: list[Any], role: str) -> Iterator[tuple[str, set[str]]]:
    """Yield calls of the functions that the catalogue does not give to the role."""
    least = {verb.name: str(verb.role) for verb in CATALOGUE.values()} | BESIDE
    for schema, name, _, count, _definer, _, types in functions:
        base, _, version = name.rpartition("_v")
        is_call = schema == "ops" or (base and version.isdigit())
        needed = OPS_FUNCTIONS.get(name) if schema == "ops" else least.get(base) if is_call else None
        if needed in INCLUDES[role]:
            continue
        nothing = ", ".join(f"NULL::{types[n]}" for n in range(count))
        yield f"SELECT {schema}.{name}({nothing})", {_REFUSED}


def _try(connection: psycopg.Connection[Any], role: str, text: str, states: set[str], tally: Tally) -> None:
    tally.injected[f"statements that the role {role} does not grant"] += 1
    try:
        cursor = connection.execute(text.encode())
        found = f"it was done ({cursor.statusmessage})"
    except psycopg.Error as error:
        tally.covered[f"sqlstate {error.sqlstate}"] += 1
        if error.sqlstate in states:
            return
        found = f"SQLSTATE {error.sqlstate}: {error}"
    tally.wrong += 1
    tally.stories.append(f"role {role}: {text}\n{found}")


def _shadow(connection: psycopg.Connection[Any], role: str, job_id: int, tally: Tally) -> None:
    """Put tables, functions and operators of the caller's own in front of Detent's. Its functions must not see them."""
    for text in _SHADOWS:
        connection.execute(text.format(forged=_FORGED).replace("{{}}", "{}").encode())
        tally.injected[f"names that the role {role} shadows"] += 1
    found = connection.execute(
        "SELECT id FROM detent.job_get_v1(ARRAY[%s, %s]::bigint[])", (_FORGED, job_id)
    ).fetchall()
    if found != [(job_id,)]:
        tally.wrong += 1
        tally.stories.append(f"role {role}: with a table `job` of its own, job_get_v1 answers {found}")
    if role != "viewer":
        first = connection.execute("SELECT detent.ids_reserve_v1(1)").fetchone()
        if first is None or not 0 < first[0] < _FORGED:
            tally.wrong += 1
            tally.stories.append(f"role {role}: with a table `job` of its own, ids_reserve_v1 answers {first}")


def _look_at_definitions(functions: list[Any], tally: Tally) -> None:
    """A function that runs with the rights of its owner looks for names where no caller can put any."""
    for _, _, signature, _, is_definer, config, _ in functions:
        if not is_definer:
            continue
        tally.injected["functions with the rights of their owner, looked at"] += 1
        path = next((one.partition("=")[2] for one in config or () if one.startswith("search_path=")), "")
        if not path.replace('"', "").replace(" ", "").endswith("pg_temp"):
            tally.wrong += 1
            tally.stories.append(
                f"{signature} runs as its owner with the search path {path!r}, which must end in pg_temp"
            )
