"""A database that moves, has moved or is being filled takes no writes, and says where to go. It can be read."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing, nullcontext

import pytest

from detent.errors import DatabaseMoved
from detent.model.clock import SystemClock
from detent.model.records import NewJob
from detent.model.workflow_records import NewSignal
from detent.store.contract import Store
from detent.store.jobs.filters import JobSearch
from detent.store.move.mover import Mover
from detent.store.move.tables import all_tables
from detent.testing.stores import is_sqlite, plain_connection, table
from detent.views.job_explanation import explain
from tests.contract.workers.sample_workers import worker
from tests.guards.test_entities import ORDER
from tests.store.invariants.life import HOUR
from tests.store.move.conftest import Databases
from tests.store.move.moving import KINDS, begun, other


def writes(store: Store, ids: dict[str, int], job_id: int) -> dict[str, Callable[[], object]]:
    """One of each kind of change; `job_id` is a number that was reserved before."""
    job = NewJob(id=job_id, task="ready", payload="{}", nonce=1, fingerprint="")
    signal = NewSignal(job_id=ids["flow"], name="go", payload="1", actor="ana")
    return {
        "job_enqueue": lambda: store.job_enqueue([job]),
        "job_enqueue, several": lambda: store.job_enqueue([job, job]),
        "job_claim": lambda: store.job_claim(
            lease_id=job_id, worker="w", queues=None, tasks=["ready"], limit=1, lease=HOUR
        ),
        "signal_send": lambda: store.signal_send([signal]),
        "signal_send, each apart": lambda: store.signal_send([signal], apart=True),
        "job_cancel": lambda: store.job_cancel([ids["ready"]], "ana"),
        "job_retry": lambda: store.job_retry([ids["quarantined"]], "ana"),
        "counts_fold": lambda: store.counts_fold(100),
        "queue_pause": lambda: store.queue_pause("default", "ana", None),
        "worker_seen": lambda: store.worker_seen(worker()),
        "schedule_pause": lambda: store.schedule_pause("nightly", "ana"),
        "entity_move": lambda: store.entity_move(ORDER, "orders", "id", "state", "1", "send", "ana"),
        "identity_renew": lambda: store.identity_renew("ana"),
    }


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("state", ["moving", "moved"])
def test_every_write_to_the_source_is_refused_with_the_place(databases: Databases, kind: str, state: str) -> None:
    """J15: and nothing that only reads."""
    url = databases.with_life(kind)
    source, target = databases.open(url), databases.open(databases.empty(other(kind)))
    source.ready()
    ids, job_id = databases.ids[kind], source.ids_reserve(1)
    if state == "moving":
        begun(source, target)
    else:
        Mover(source, target, SystemClock(), actor="ana").run()
    later = databases.open(url)
    later.ready()
    for name, write in writes(later, ids, job_id).items():
        with pytest.raises(DatabaseMoved) as refused:
            write()
        assert (refused.value.state, refused.value.place) == (state, target.name), name
        assert target.name in str(refused.value)
    assert later.job_list(JobSearch(), limit=5).rows
    assert target.name in explain(later, ids["ready"])
    assert explain(later, ids["succeeded"]).startswith("it succeeded")
    assert later.verify() == []
    # On SQLite there is nothing to write if nothing differs.
    with pytest.raises(DatabaseMoved) if kind == "postgres" else nullcontext():
        assert later.migrate() == []
    assert later.verify() == []


@pytest.mark.parametrize("kind", KINDS)
def test_no_table_of_a_closed_database_takes_a_row(databases: Databases, kind: str) -> None:
    """Also by hand: the database itself refuses."""
    url = databases.with_life(kind)
    begun(databases.open(url), databases.open(databases.empty(other(kind))))
    own = ("database_move", "database_move_table")
    for one in all_tables():
        if one.name in own:
            continue
        name, column = table(url, one.name), one.columns[0].name
        for change in (f"DELETE FROM {name}", f"UPDATE {name} SET {column} = {column}"):
            with closing(plain_connection(url)) as connection:
                has_rows = connection.execute(f"SELECT 1 FROM {name} LIMIT 1").fetchone() is not None
                if is_sqlite(url) and not has_rows:
                    continue
                with pytest.raises(Exception, match="DT048 database: moving "):
                    connection.execute(change)


@pytest.mark.parametrize("kind", KINDS)
def test_a_target_that_is_not_whole_takes_no_writes_either(databases: Databases, kind: str) -> None:
    source, url = databases.open(databases.with_life(other(kind))), databases.empty(kind)
    begun(source, databases.open(url))
    target = databases.open(url)
    with pytest.raises(DatabaseMoved) as refused:
        target.queue_pause("default", "ana")
    assert (refused.value.state, refused.value.place) == ("loading", source.name)
    (row,) = target.database_moves()
    assert (row.direction, row.state, row.place, row.actor) == ("in", "loading", source.name, "ana")
    Mover(source, target, SystemClock(), actor="ana").run()
    assert target.queue_pause("default", "ana").changed


@pytest.mark.parametrize("kind", KINDS)
def test_a_transaction_of_a_caller_is_refused_too(databases: Databases, kind: str) -> None:
    url = databases.with_life(kind)
    source = databases.open(url)
    source.ready()
    job_id = source.ids_reserve(1)
    begun(source, databases.open(databases.empty(other(kind))))
    job = NewJob(id=job_id, task="ready", payload="{}", nonce=1, fingerprint="")
    with closing(plain_connection(url)) as connection, pytest.raises(DatabaseMoved):
        databases.open(url).on(connection).job_enqueue([job])
