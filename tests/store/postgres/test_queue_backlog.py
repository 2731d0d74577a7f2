"""The view `queue_backlog`, which autoscalers read."""

from __future__ import annotations

from contextlib import closing

from detent.store.contract import Store
from detent.store.postgres.roles import INCLUDES
from detent.store.postgres.store import PostgresStore
from detent.testing.stores import plain_connection
from tests.contract.jobs.sample_jobs import claim, enqueue
from tests.store.postgres.connections import run_sql


def test_what_an_autoscaler_reads(postgres_ready_url: str) -> None:
    """M1: ready and running jobs of a queue, with the rights of a viewer."""
    with closing(PostgresStore(postgres_ready_url)) as store:
        store.install_roles()
        _fill(store)
    with closing(plain_connection(postgres_ready_url)) as connection:
        connection.execute("SET ROLE detent_viewer")
        found = connection.execute("SELECT queue, ready, running, paused FROM detent.queue_backlog").fetchall()
        assert sorted(found) == [("files", 1, 0, True), ("mail", 2, 1, False)]
        one = connection.execute("SELECT ready + running FROM detent.queue_backlog WHERE queue = 'mail'").fetchall()
        assert one == [(3,)]
    run_sql(postgres_ready_url, *(f"DROP OWNED BY detent_{role}" for role in INCLUDES))


def _fill(store: Store) -> None:
    enqueue(store, queue="mail")
    claim(store)
    enqueue(store, queue="mail", tenant="a")
    enqueue(store, queue="mail", priority=3)
    enqueue(store, queue="files")
    store.queue_pause("files", "ana")
