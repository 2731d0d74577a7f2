"""The walk: the invariants for a part of the record at a time, newest first, each part on a snapshot of its own."""

from __future__ import annotations

import threading
import time
from contextlib import closing

import pytest

from detent.errors import DatabaseBusy
from detent.model.service_records import WalkPlace
from detent.store.contract import Store
from detent.store.invariants import load
from detent.store.invariants.partial_tables import of_jobs, of_queue_rows, of_run, of_slots
from detent.store.invariants.stepwise_check import BY_QUEUE_ROW, BY_RUN, BY_SLOT, UNWALKED, WHOLE
from detent.store.open import open_store
from detent.testing.stores import plain_connection
from tests.deadlines import scaled
from tests.plans.crowd import fill
from tests.store.invariants.life import Life
from tests.store.invariants.owner import Owner
from tests.store.invariants.walking import walked

SECONDS_MAX = scaled(30.0)


@pytest.mark.parametrize("rows_max", [1, 5, 2000])
def test_a_healthy_record_is_healthy_in_parts(store: Store, life: Life, rows_max: int) -> None:
    """R2: however it is cut, no part of it looks broken; and so is an empty one."""
    assert walked(store, rows_max) == []


def test_the_newest_jobs_come_first_and_each_comes_once(store: Store, life: Life, owner: Owner) -> None:
    """R2: a step takes as many jobs as it may, counted down from the newest, whatever the gaps between their ids."""
    jobs = [row[0] for row in owner.rows("SELECT id FROM {job} ORDER BY id DESC")]
    place = store.verify_step(WalkPlace(), 4).then
    lows = []
    while place is not None and place.part == "jobs":
        place = store.verify_step(place, 4).then
        if place is not None and place.below is not None:
            lows.append(place.below)
    assert lows == jobs[3::4]


def test_an_empty_database_is_walked_through(database_url: str) -> None:
    with closing(open_store(database_url)) as store:
        store.ready()
        assert walked(store, 10) == []


def test_only_what_looks_at_the_schema_is_not_judged_by_job() -> None:
    """R2: an invariant that names a table which is not kept by job cannot be narrowed, and says so at once."""
    for dialect in ("postgres", "sqlite"):
        for invariant in load(dialect):
            if invariant.name in WHOLE | UNWALKED:
                continue
            if invariant.name in BY_RUN:
                assert ("%(run)s" if dialect == "postgres" else ":run") in of_run(dialect, invariant.sql)
                continue
            if invariant.name in BY_SLOT:
                assert ("%(key)s" if dialect == "postgres" else ":key") in of_slots(dialect, invariant.sql)
                continue
            narrowed = of_jobs(dialect, invariant.sql)
            assert ("%(low)s" if dialect == "postgres" else ":low") in narrowed, invariant.name
            if invariant.name in BY_QUEUE_ROW:
                assert of_queue_rows(dialect, invariant.sql) != narrowed
        names = {invariant.name for invariant in load(dialect)}
        assert names > WHOLE | BY_QUEUE_ROW | BY_RUN | BY_SLOT
        with pytest.raises(KeyError):
            of_jobs(dialect, "SELECT 1 FROM detent.schedule s")


def test_a_look_that_waits_is_broken_off_on_postgres(postgres_store_url: str) -> None:
    """W1: whoever ends does not wait for it. Nothing else that runs afterwards is struck."""
    with closing(open_store(postgres_store_url)) as store, closing(plain_connection(postgres_store_url)) as busy:
        busy.execute("LOCK TABLE detent.event IN ACCESS EXCLUSIVE MODE")
        errors = _broken_off(store)
        busy.rollback()
        assert [type(error) for error in errors] == [DatabaseBusy]
        assert store.verify() == []


def test_a_look_that_takes_long_is_broken_off_on_sqlite(sqlite_url: str) -> None:
    """W1: in the middle of a statement."""
    with closing(open_store(sqlite_url)) as store:
        store.ready()
        fill(sqlite_url, 5000)
        assert [type(error) for error in _broken_off(store)] == [DatabaseBusy]
        assert walked(store, 2000) == []


def _broken_off(store: Store) -> list[DatabaseBusy]:
    """Look again and again, and break it off until it ends: a single look may be over before anybody gets to that."""
    begun, over = threading.Event(), threading.Event()
    errors: list[DatabaseBusy] = []

    def look() -> None:
        try:
            while not over.is_set():
                store.verify(lambda _left: begun.set())
        except DatabaseBusy as error:
            errors.append(error)

    thread = threading.Thread(target=look)
    thread.start()
    assert begun.wait(SECONDS_MAX)
    deadline = time.monotonic() + SECONDS_MAX
    while thread.is_alive() and time.monotonic() < deadline:
        store.cancel_reads()
        thread.join(0.001)
    over.set()
    thread.join()
    return errors
