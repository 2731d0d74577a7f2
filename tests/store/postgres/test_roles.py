"""The optional roles: each may call its verbs and see the views, and nothing else."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import psycopg
import pytest
from psycopg import errors, sql

from detent.errors import DatabaseError
from detent.lifecycle.library import OWN_NAMES
from detent.model.records import Enqueued, Finish
from detent.store.contract import CATALOGUE
from detent.store.open import open_store
from detent.store.postgres.roles import INCLUDES, roles_sql
from detent.store.postgres.store import PostgresStore
from detent.testing.postgres import Cluster
from detent.worker.options import WorkerOptions
from detent.worker.services.service_set import ServiceSet
from tests.app.shop import until
from tests.contract.jobs.sample_jobs import claim, claim_one, enqueue, job, new_job
from tests.store.postgres.connections import as_user, run_sql

Login = Callable[[str], str]


@pytest.fixture
def login(postgres_store_url: str) -> Iterator[Login]:
    """Makes a login that has one of the roles and no other right; gives its url."""
    with closing(PostgresStore(postgres_store_url)) as store:
        store.install_roles()
    made: list[str] = []

    def of(role: str) -> str:
        name = f"t_{role}_{secrets.token_hex(4)}"
        run_sql(postgres_store_url, f"CREATE ROLE {name} LOGIN IN ROLE detent_{role}")
        made.append(name)
        return as_user(postgres_store_url, name)

    yield of
    for name in made:
        run_sql(postgres_store_url, f"DROP OWNED BY {name}", f"DROP ROLE {name}")
    run_sql(postgres_store_url, *(f"DROP OWNED BY detent_{role}" for role in INCLUDES))


def test_a_client_enqueues_and_cannot_touch_tables(postgres_store_url: str, login: Login) -> None:
    """S2: tables are reached only through functions."""
    url = login("client")
    with closing(open_store(url)) as store:
        store.ready()
        item = new_job(store)
        assert store.job_enqueue([item]) == [Enqueued(item.id, True)]
        assert job(store, item.id).state == "pending"
        store.job_cancel([item.id], "ana")
        with pytest.raises(DatabaseError, match="permission denied for function job_claim_v2"):
            claim(store)
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in (
            "SELECT * FROM detent.job",
            "INSERT INTO detent.ready VALUES (1, now(), 1)",
            "UPDATE detent.job SET payload = '0'",
            "DELETE FROM detent.event",
            "SELECT detent.lane_of('q', 't', '', 0::smallint, '')",
            "SELECT nextval('detent.id_seq')",
            "CREATE TABLE detent.mine (x integer)",
        ):
            with pytest.raises(errors.InsufficientPrivilege):
                connection.execute(statement.encode())


def test_a_worker_claims_commits_and_finishes(postgres_store_url: str, login: Login) -> None:
    """S2: and the user's own SQL in a commit block runs with the worker's own rights."""
    run_sql(postgres_store_url, "CREATE TABLE public.orders (id integer)")
    with closing(open_store(postgres_store_url)) as owner, closing(open_store(login("worker"))) as store:
        enqueue(owner)
        held = claim_one(store)
        with pytest.raises(errors.InsufficientPrivilege), store.commit_block(held.job_id, held.attempt) as tx:
            tx.execute("INSERT INTO public.orders VALUES (1)")
        run_sql(postgres_store_url, "GRANT INSERT ON public.orders TO PUBLIC")
        with store.commit_block(held.job_id, held.attempt) as tx:
            tx.execute("INSERT INTO public.orders VALUES (:id)", {"id": 1})
        store.job_finish([Finish(held.job_id, held.attempt)], "ana")
        assert job(store, held.job_id).state == "succeeded"
        with pytest.raises(DatabaseError, match="permission denied for function queue_pause_v1"):
            store.queue_pause("default", "ana")


def test_a_worker_may_do_all_that_workers_do(
    postgres_store_url: str, login: Login, caplog: pytest.LogCaptureFixture
) -> None:
    """S2, W3: heartbeats and retention were refused, and only the log said so. The record is for its owner to check: a
    worker that may not read it says so once, and raises no alert of damage."""
    old = WorkerOptions(app="shop:app", name="w", keep_succeeded=0.001, keep_others=0.001)
    with closing(open_store(login("worker"))) as store:
        services = ServiceSet(store, old, store.ids_reserve(1)).services
        assert {"heartbeat", "retention", "invariants"} <= {one.name for one in services}
        for one in services:
            one.run(0.0)
            one.run(1_000.0)
        assert caplog.text.count("does not check the record") == 1
        assert "storage_is_sound" not in caplog.text
        assert [worker.name for worker in store.worker_list(60)] == ["w"]


def test_a_viewer_looks_and_changes_nothing(postgres_store_url: str, login: Login) -> None:
    """S2: SELECT on the views, and the looking verbs."""
    url = login("viewer")
    with closing(open_store(postgres_store_url)) as owner:
        job_id = enqueue(owner)
    with closing(open_store(url)) as store, psycopg.connect(url, autocommit=True) as connection:
        assert job(store, job_id).state == "pending"
        assert connection.execute("SELECT entity, to_state FROM detent.transition").fetchall() == [("job", "pending")]
        assert connection.execute("SELECT * FROM detent.executions").fetchall() == []
        with pytest.raises(DatabaseError, match="permission denied for function job_cancel_v1"):
            store.job_cancel([job_id], "ana")
        with pytest.raises(errors.InsufficientPrivilege):
            connection.execute("DELETE FROM detent.transition_log")


def test_a_client_cannot_forge_lines_of_detents_own_entities(postgres_store_url: str, login: Login) -> None:
    """S2, E4: a client may move its own entities; it could write lines for limits, schedules and alerts as well."""
    with psycopg.connect(login("client"), autocommit=True) as connection:
        forge = "SELECT detent.entity_move_v1(%s, '1', 'a', 'b', 'x', 'mallory')"
        for name in OWN_NAMES:
            with pytest.raises(psycopg.Error) as refused:
                connection.execute(forge, (name,))
            assert refused.value.sqlstate == "DT041"
        connection.execute(forge, ("order",))
    lines = run_sql(postgres_store_url, "SELECT entity FROM detent.transition_log WHERE actor = 'mallory'")
    assert lines == [("order",)]


@pytest.mark.parametrize("role", INCLUDES)
def test_each_role_may_call_exactly_its_verbs(postgres_store_url: str, login: Login, role: str) -> None:
    """S2: as the catalogue says; a worker may what a client may, an admin everything, each what a viewer may."""
    login(role)
    allowed = sql.SQL("""
        SELECT regexp_replace(p.proname, '_v[0-9]+$', '') FROM pg_proc p
         WHERE p.pronamespace = 'detent'::regnamespace AND p.proname ~ '_v[0-9]+$'
           AND has_function_privilege({}, p.oid, 'EXECUTE')
    """).format(sql.Literal(f"detent_{role}"))
    with psycopg.connect(postgres_store_url) as connection:
        found = {name for (name,) in connection.execute(allowed)}
    wanted = {verb.name for verb in CATALOGUE.values() if verb.role in INCLUDES[role]}
    # `entity_counts` reads a table of the user, with the caller's own rights.
    assert found & set(CATALOGUE) == wanted - {"entity_counts"}


def test_roles_may_be_installed_again(postgres_store_url: str, login: Login) -> None:
    url = login("client")
    with closing(PostgresStore(postgres_store_url)) as store:
        store.migrate()
        store.install_roles()
    with closing(open_store(url)) as client:
        enqueue(client)


def test_whoever_has_a_role_may_call_what_a_migration_brings(postgres_store_url: str, login: Login) -> None:
    """S2: a function that is new is nobody's; a client could not enqueue until somebody made the roles anew."""
    url = login("client")
    run_sql(postgres_store_url, "REVOKE ALL ON FUNCTION detent.job_enqueue_one_v1 FROM detent_client")
    with closing(PostgresStore(postgres_store_url)) as store:
        store.migrate()
    with closing(open_store(url)) as client:
        enqueue(client)


def test_roles_may_be_installed_for_two_databases_at_once(
    postgres_store_url: str, postgres_cluster: Cluster, postgres_template: str
) -> None:
    """S2: they are the whole server's; who came second was refused."""
    prefix = f"t_{secrets.token_hex(4)}_"
    script = roles_sql().replace("detent_", prefix)
    waits = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    other = f"{postgres_template}_roles"
    other_url = postgres_cluster.create_database(other, template=postgres_template)
    drop = [f"DROP OWNED BY {prefix}{role}" for role in INCLUDES]
    try:
        with psycopg.connect(postgres_store_url) as first, ThreadPoolExecutor(1) as thread:
            first.execute(script.encode())
            second = thread.submit(run_sql, other_url, script)
            until(lambda: run_sql(other_url, waits) != [] or second.done())
            first.commit()
            second.result(60)
        viewer = f"SELECT has_table_privilege('{prefix}viewer', 'detent.transition', 'SELECT')"
        assert run_sql(postgres_store_url, viewer) == run_sql(other_url, viewer) == [(True,)]
        run_sql(other_url, *drop)
        run_sql(postgres_store_url, *drop, *(f"DROP ROLE {prefix}{role}" for role in INCLUDES))
    finally:
        postgres_cluster.drop_database(other)
