"""A release is migrated in while clients and workers of the older one go on."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager

import psycopg
import pytest

from detent.errors import DetentError
from detent.model.records import Finish
from detent.store.contract import Store
from detent.store.open import open_store
from detent.testing.stores import is_sqlite
from prove.upgrades.next_release import NextRelease
from tests.contract.jobs.sample_jobs import claim, new_job
from tests.deadlines import until

GONE_ON = 100
"""Jobs that clients enqueue while the migration cannot have its lock."""
WAITS = """
SELECT 1 FROM pg_stat_activity
 WHERE datname = current_database() AND wait_event_type = 'Lock' AND query ~ 'ALTER TABLE'
"""
WORK = """
from detent.model.records import Finish
store.ready()
done = 0
while done < 20:
    lease = store.ids_reserve(1)
    held = store.job_claim(lease_id=lease, worker="new", queues=None, tasks=["mail.send"], limit=3, lease=60)
    done += len(store.job_finish([Finish(one.job_id, one.attempt, None) for one in held], "new"))
print(json.dumps(done))
"""


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> NextRelease:
    """One more state, one more column and an index on it."""
    return NextRelease(tmp_path_factory.mktemp("live")).with_number().with_state().with_column().with_index()


class Load:
    """Clients and workers, each in a thread of its own."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._stop = threading.Event()
        self.enqueued: list[int] = []
        self.finished: list[int] = []
        self.errors: list[BaseException] = []

    def _enqueue(self) -> None:
        jobs = [new_job(self._store) for _ in range(5)]
        answers = self._store.job_enqueue(jobs)
        assert not any(isinstance(one, DetentError) for one in answers), answers
        self.enqueued += [job.id for job in jobs]

    def _work(self) -> None:
        for held in claim(self._store, limit=10):
            (answer,) = self._store.job_finish([Finish(held.job_id, held.attempt, None)], "old")
            assert not isinstance(answer, DetentError), answer
            self.finished.append(held.job_id)

    def _until_stopped(self, work: Callable[[], None]) -> None:
        try:
            while not self._stop.is_set():
                work()
                time.sleep(0.005)
        except BaseException as error:
            self.errors.append(error)

    @contextmanager
    def running(self) -> Iterator[None]:
        threads = [
            threading.Thread(target=self._until_stopped, args=(work,))
            for work in (self._enqueue, self._work, self._work)
        ]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._stop.set()
            for thread in threads:
                thread.join()


@contextmanager
def long_reader(url: str) -> Iterator[psycopg.Connection | None]:
    """A transaction that has read jobs and stays open: on PostgreSQL no ALTER TABLE gets its lock meanwhile, and every
    call that comes after the ALTER TABLE waits behind it. None on SQLite, where readers stop nothing."""
    if is_sqlite(url):
        yield None
        return
    with psycopg.connect(url) as connection:
        connection.execute("SELECT count(*) FROM detent.job")
        yield connection


def is_waiting(url: str) -> bool:
    """Return whether an ALTER TABLE waits for its lock."""
    with psycopg.connect(url) as connection:
        return connection.execute(WAITS).fetchone() is not None


def test_an_index_that_was_interrupted_is_built_again(postgres_ready_url: str, release: NextRelease) -> None:
    """L8: PostgreSQL leaves an invalid index behind, which no query uses and which IF NOT EXISTS would keep."""
    with psycopg.connect(postgres_ready_url, autocommit=True) as connection:
        connection.execute("CREATE INDEX job_note ON detent.job (id)")
        connection.execute("UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'detent.job_note'::regclass")
        release.migrate(postgres_ready_url)
        found = connection.execute(
            "SELECT indisvalid, pg_get_indexdef(indexrelid) FROM pg_index"
            " WHERE indexrelid = 'detent.job_note'::regclass"
        ).fetchone()
    assert found == (True, "CREATE INDEX job_note ON detent.job USING btree (note) WHERE (note IS NOT NULL)")


def test_nothing_is_lost_and_no_client_waits_for_the_migration(database_url: str, release: NextRelease) -> None:
    """L8: old and new workers go on side by side, and clients go on while the migration waits for its locks."""
    with closing(open_store(database_url)) as store, ThreadPoolExecutor(1) as thread:
        store.ready()
        load = Load(store)
        with load.running(), long_reader(database_url) as reader:
            migrating = thread.submit(release.migrate, database_url)
            if reader is not None:
                until(lambda: is_waiting(database_url), "a migration that waits for its lock")
                enqueued = len(load.enqueued)
                until(lambda: len(load.enqueued) >= enqueued + GONE_ON, "clients that go on beside it")
                assert not migrating.done()
                reader.rollback()
            applied = migrating.result()
            assert applied[:2] == ["0002_note", "0003_note_index"]
            (by_new,) = release.run(database_url, WORK)
        assert load.errors == []
        while held := claim(store, limit=100):
            store.job_finish([Finish(one.job_id, one.attempt, None) for one in held], "old")
            load.finished += [one.job_id for one in held]
        states = {job.state for job in store.job_get(load.enqueued) if job is not None}
        assert states == {"succeeded"}
        assert len(load.finished) + by_new == len(load.enqueued)
    _, wrong = release.run(
        database_url, "print(json.dumps(store.migrate()))\nprint(json.dumps([repr(one) for one in store.verify()]))"
    )
    assert wrong == []
