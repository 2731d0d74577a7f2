"""Upgrades that are killed at their statements, while clients and workers of both releases go on."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psycopg

from detent.errors import DetentError, ReleaseTooOld, SchemaTooNew
from detent.model.json_codec import fingerprint
from detent.model.records import Finish, NewJob
from detent.store.contract import Store
from detent.store.open import open_store
from detent.testing.postgres import start_cluster
from detent.testing.stores import is_sqlite
from prove.coverage import error_points, transitions_of
from prove.figure import Budget, Tally
from prove.kills.scene import Kind
from prove.results import ROOT
from prove.upgrades.described_schema import described
from prove.upgrades.next_release import NextRelease

__all__ = ["NextSide", "next_release", "sweep"]

LOCK_SECONDS_MAX = 1.0
"""A statement of a client may wait so long for a lock that a migrator holds or waits for."""
_BY_NEW = 6
"""Jobs that the newer release finishes beside the older one, in each round."""
_MORE = 15
"""Jobs that clients of the older release enqueue after each kill."""
_READER_SECONDS = 2.0
"""Longer than any statement may wait: an ALTER TABLE that queued for all of it would be found."""
_READER_EVERY = 3
"""In one round of this number, a transaction stays open."""
_WAIT_SECONDS_MAX = 120.0
_LOOK_SECONDS = 0.05
_PAYLOAD = '{"n":1}'
_NOT_COMPARED = ("ids", "sequences", "comments")
"""They depend on what the database was used for."""
_BLOCKED = """
SELECT coalesce(max(extract(epoch FROM clock_timestamp() - l.waitstart)), 0)::float8 FROM pg_locks l
 WHERE NOT l.granted AND l.locktype = 'relation' AND l.mode IN ('AccessShareLock', 'RowShareLock', 'RowExclusiveLock')
   AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""
"""The longest wait of an ordinary statement for a table: only a change of the table makes it wait."""


def next_release(folder: Path) -> NextRelease:
    """Return a release beside which this one goes on: one more state, a column, and an index on it."""
    return NextRelease(folder).with_number().with_state().with_column().with_index()


class NextSide:
    """A process of the next release (`next_side.py`)."""

    def __init__(self, release: NextRelease) -> None:
        paths = os.pathsep.join(map(str, (release.source, ROOT)))
        self._process = subprocess.Popen(
            [sys.executable, "-m", "prove.upgrades.next_side"],
            cwd=release.source,
            env=os.environ | {"PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, name: str, **arguments: Any) -> Any:
        """Return the answer to a request. Raises AssertionError if it failed."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([name, arguments]) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        answer = json.loads(line) if line else {"error": f"the process ended with {self._process.wait()}"}
        if "error" in answer:
            raise AssertionError(f"the next release: {answer['error']}")
        return answer["answer"]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.communicate()


class _Load:
    """Clients and workers of this release, each in a thread, and the longest wait of a statement for a lock."""

    def __init__(self, url: str, store: Store) -> None:
        self._url, self._store = url, store
        self._stop = threading.Event()
        self.enqueued: list[int] = []
        self.finished: list[int] = []
        self.errors: list[BaseException] = []
        self.waited = 0.0
        """The longest wait for a lock on PostgreSQL, beyond what this machine let the watcher wait for its turn. SQLite
        has one lock, and every writer waits for it."""

    @contextmanager
    def running(self) -> Iterator[None]:
        self._stop.clear()
        works = [self._enqueue, self._work]
        threads = [threading.Thread(target=self._until_stopped, args=(work,)) for work in works]
        threads.append(threading.Thread(target=self._watch))
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._stop.set()
            for thread in threads:
                thread.join()

    def goes_on(self) -> bool:
        """Wait until clients have enqueued more. False if they do not."""
        before, deadline = len(self.enqueued), time.monotonic() + _WAIT_SECONDS_MAX
        while len(self.enqueued) < before + _MORE:
            if self.errors or time.monotonic() > deadline:
                return False
            time.sleep(0.005)
        return True

    def drain(self) -> None:
        """Finish what is left."""
        while self._work():
            pass

    def _until_stopped(self, work: Callable[[], object]) -> None:
        try:
            while not self._stop.is_set():
                work()
                time.sleep(0.005)
        except BaseException as error:
            self.errors.append(error)

    def _enqueue(self) -> None:
        first = self._store.ids_reserve(3)
        jobs = [
            NewJob(id=first + n, task="plain", payload=_PAYLOAD, nonce=1, fingerprint=fingerprint("plain", _PAYLOAD))
            for n in range(3)
        ]
        answers = self._store.job_enqueue(jobs)
        if wrong := [one for one in answers if isinstance(one, DetentError)]:
            raise wrong[0]
        self.enqueued += [job.id for job in jobs]

    def _work(self) -> int:
        lease_id = self._store.ids_reserve(1)
        held = self._store.job_claim(
            lease_id=lease_id, worker="old", queues=None, tasks=["plain"], limit=3, lease=600.0
        )
        for one in held:
            (answer,) = self._store.job_finish([Finish(one.job_id, one.attempt, None)], "old")
            if isinstance(answer, DetentError):
                raise answer
            self.finished.append(one.job_id)
        return len(held)

    def _watch(self) -> None:
        if is_sqlite(self._url):
            return
        with psycopg.connect(self._url, autocommit=True) as connection:
            while not self._stop.wait(_LOOK_SECONDS):
                began_at = time.monotonic()
                row = connection.execute(_BLOCKED).fetchone()
                lag = 10 * (time.monotonic() - began_at)
                self.waited = max(self.waited, (row[0] if row else 0.0) - lag)


class _Sweep:
    """All rounds on one kind of database."""

    def __init__(self, kind: Kind, tally: Tally, migrator: NextSide, worker: NextSide, copy: Callable[[], Any]) -> None:
        self._kind, self._tally, self._copy = kind, tally, copy
        self._migrator, self._worker = migrator, worker
        with copy() as url:
            self.statements: int = migrator.ask("count", url=url)
            self._wanted = _comparable(url)

    def round(self, k: int, after: bool, with_reader: bool) -> None:
        """Kill an upgrade at its k-th statement; then let another end it. Clients and workers go on all the while."""
        story = f"{self._kind}: migrator killed {'after' if after else 'before'} statement {k}"
        story += ", beside a transaction that stays open" if with_reader else ""
        with self._copy() as url, closing(open_store(url)) as store:
            store.ready()
            load = _Load(url, store)
            try:
                found = self._upgrade(url, store, load, k, after, with_reader)
            except Exception as error:
                found = [("wrong", repr(error))]
            self._tally.covered.update(transitions_of(url))
        for name, what in found:
            setattr(self._tally, name, getattr(self._tally, name) + 1)
            self._tally.stories.append(f"{story}: {what}")

    def _upgrade(
        self, url: str, store: Store, load: _Load, k: int, after: bool, with_reader: bool
    ) -> list[tuple[str, str]]:
        found: list[tuple[str, str]] = []
        with load.running():
            # Beside a busy database the number of statements varies a little, so the last of them may not be there.
            was_killed = self._migrator.ask("kill", url=url, k=k, after=after)
            what = "migrator killed at a statement" if was_killed else "upgrade that ended before the kill"
            self._tally.injected[f"{what}, {_NAMES[self._kind]}"] += 1
            self._tally.covered["fault SIGKILL"] += was_killed
            if not load.goes_on():
                found.append(("stuck", f"the older release did not go on after the kill: {load.errors}"))
        found += self._refused(url, store)
        with load.running(), ThreadPoolExecutor(2) as threads:
            by_new = threads.submit(self._worker.ask, "work", url=url, jobs=_BY_NEW)
            with _reader(url if with_reader else None):
                migrating = threads.submit(self._migrator.ask, "migrate", url=url)
                if with_reader:
                    time.sleep(_READER_SECONDS)
            migrating.result()
            finished_by_new: list[int] = by_new.result()
            if not load.goes_on():
                found.append(("stuck", f"the older release did not go on after the upgrade: {load.errors}"))
        load.drain()
        found += [("wrong", repr(error)) for error in load.errors]
        if load.waited > LOCK_SECONDS_MAX:
            found.append(("wrong", f"a statement waited {load.waited:.1f} s for a lock"))
        found += self._of_jobs(store, load, finished_by_new)
        found += [("wrong", f"verify: {one}") for one in self._migrator.ask("verify", url=url)]
        if _comparable(url) != self._wanted:
            found.append(("wrong", "the schema differs from that of an upgrade in one go"))
        return found

    def _refused(self, url: str, store: Store) -> list[tuple[str, str]]:
        """Let the older release migrate. If it is refused, nothing has changed."""
        before = described(url)
        try:
            store.migrate()
        except (ReleaseTooOld, SchemaTooNew) as error:
            self._tally.covered.update(error_points(error))
            self._tally.injected[f"migrate of an older release that is refused, {_NAMES[self._kind]}"] += 1
            if described(url) != before:
                return [("wrong", "an older release was refused, and has changed the schema")]
        return []

    @staticmethod
    def _of_jobs(store: Store, load: _Load, by_new: Sequence[int]) -> list[tuple[str, str]]:
        """Every job succeeded, finished by one of the releases."""
        found: list[tuple[str, str]] = []
        rows = store.job_get(load.enqueued)
        lost = [job_id for job_id, row in zip(load.enqueued, rows, strict=True) if row is None]
        failed = [row.id for row in rows if row is not None and row.state != "succeeded"]
        done = [*load.finished, *by_new]
        if lost:
            found.append(("lost", f"jobs {lost} are gone"))
        if failed:
            found.append(("stuck", f"jobs {failed} did not succeed"))
        if len(set(done)) != len(done):
            found.append(("doubled", "a job was finished twice"))
        if set(done) != set(load.enqueued):
            found.append(("wrong", f"{len(done)} of {len(load.enqueued)} jobs were finished"))
        return found


_NAMES = {"sqlite": "SQLite", "postgres": "PostgreSQL"}


def _comparable(url: str) -> dict[str, list[str]]:
    return {part: rows for part, rows in described(url).items() if part not in _NOT_COMPARED}


@contextmanager
def _reader(url: str | None) -> Iterator[None]:
    """A transaction that has read jobs and stays open. On PostgreSQL no ALTER TABLE gets its lock meanwhile."""
    if url is None or is_sqlite(url):
        yield
        return
    with psycopg.connect(url) as connection:
        connection.execute("SELECT count(*) FROM detent.job")
        yield


@contextmanager
def _databases(kind: Kind) -> Iterator[Callable[[], Any]]:
    """Yield what makes copies of a migrated database; each is a context, whose value is its URL."""
    if kind == "sqlite":
        with tempfile.TemporaryDirectory(prefix="detent-upgrades-") as folder:
            template = Path(folder) / "template.db"
            _prepare(f"sqlite:///{template}")

            @contextmanager
            def copy_file() -> Iterator[str]:
                with tempfile.TemporaryDirectory(dir=folder) as own:
                    path = Path(own) / "upgrade.db"
                    path.write_bytes(template.read_bytes())
                    yield f"sqlite:///{path}"

            yield copy_file
        return
    with start_cluster() as cluster:
        name = cluster.new_name("upgrade_template")
        _prepare(cluster.create_database(name))

        @contextmanager
        def copy() -> Iterator[str]:
            own = cluster.new_name("upgrade")
            try:
                yield cluster.create_database(own, template=name)
            finally:
                with suppress(psycopg.Error):
                    cluster.drop_database(own)

        try:
            yield copy
        finally:
            cluster.drop_database(name)


def _prepare(url: str) -> None:
    with closing(open_store(url)) as store:
        store.ready()


def sweep(
    budget: Budget,
    kind: Kind,
    *,
    most: int,
    release: NextRelease | None = None,
    points: Sequence[tuple[int, bool]] = (),
) -> Tally:
    """Kill upgrades before and after each of their statements, in an order that the seed decides, or at `points`: the
    number of a statement, and whether after it."""
    tally = Tally()
    with tempfile.TemporaryDirectory(prefix="detent-release-") as folder, _databases(kind) as copy:
        release = release or next_release(Path(folder) / "next")
        with NextSide(release) as migrator, NextSide(release) as worker:
            here = _Sweep(kind, tally, migrator, worker, copy)
            drawn = [(k, after) for k in range(1, here.statements + 1) for after in (False, True)]
            random.Random(budget.seed).shuffle(drawn)
            for number, (k, after) in enumerate((points or drawn)[:most]):
                if number > 0 and budget.is_spent:
                    break  # one round in any case: on a busy machine the preparations may take all the time
                here.round(k, after, with_reader=number % _READER_EVERY == 0)
            done = sum(count for what, count in tally.injected.items() if what.startswith("migrator killed"))
            tally.notes.append(f"{done} of {len(drawn)} points")
    return tally
