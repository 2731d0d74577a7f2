"""A release is migrated in while clients and workers of the older one go on."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any

import psycopg
import pytest

from detent.errors import DetentError
from detent.model.records import Finish
from detent.store.contract import Store
from detent.store.open import open_store
from detent.testing.stores import is_sqlite
from tests.contract.kit import claim, new_job
from tests.deadlines import scaled
from tests.migrations.next_release import NextRelease

WAIT_SECONDS_MAX = 1.0
ONE_BY_ONE = (
    "-- one by one\nCREATE INDEX CONCURRENTLY IF NOT EXISTS job_note ON detent.job (note) WHERE note IS NOT NULL;\n"
)
ON_SQLITE = "CREATE INDEX detent_job_note ON detent_job (note) WHERE note IS NOT NULL;\n"
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
    made = NextRelease(tmp_path_factory.mktemp("live")).with_number().with_state().with_column()
    for dialect, text in (("postgres", ONE_BY_ONE), ("sqlite", ON_SQLITE)):
        (made.source / "detent" / "store" / dialect / "schema" / "0003_note_index.sql").write_text(
            f"-- oldest code: 1\n{text}"
        )
    return made


class Load:
    """Clients and workers, each in a thread of its own, and the longest time that one of their calls took."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._stop = threading.Event()
        self.enqueued: list[int] = []
        self.finished: list[int] = []
        self.errors: list[BaseException] = []
        self.longest = 0.0

    def _timed(self, call: Callable[[], Any]) -> Any:
        began = time.monotonic()
        try:
            return call()
        finally:
            self.longest = max(self.longest, time.monotonic() - began)

    def _enqueue(self) -> None:
        jobs = [new_job(self._store) for _ in range(5)]
        answers = self._timed(lambda: self._store.job_enqueue(jobs))
        assert not any(isinstance(one, DetentError) for one in answers), answers
        self.enqueued += [job.id for job in jobs]

    def _work(self) -> None:
        for held in self._timed(lambda: claim(self._store, limit=10)):
            (answer,) = self._timed(
                lambda held=held: self._store.job_finish([Finish(held.job_id, held.attempt, None)], "old")  # type: ignore[misc]
            )
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
def long_reader(url: str, seconds: float) -> Iterator[None]:
    """A transaction that has read jobs and stays open: on PostgreSQL no ALTER TABLE gets its lock meanwhile."""
    if is_sqlite(url):
        yield
        return
    with psycopg.connect(url) as connection:
        connection.execute("SELECT count(*) FROM detent.job")
        timer = threading.Timer(seconds, connection.rollback)
        timer.start()
        yield
        timer.join()


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


def test_nothing_is_lost_and_nobody_waits_long(database_url: str, release: NextRelease) -> None:
    """L8: old and new workers go on side by side; no call waits longer than a second for a lock."""
    with closing(open_store(database_url)) as store:
        store.ready()
        load = Load(store)
        with load.running(), long_reader(database_url, 1.5):
            applied = release.migrate(database_url)
            assert applied[:2] == ["0002_note", "0003_note_index"]
            (by_new,) = release.run(database_url, WORK)
        assert load.errors == []
        assert load.longest < scaled(WAIT_SECONDS_MAX)
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
