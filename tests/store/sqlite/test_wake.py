"""Waiting for work on one file: bells, commits that nobody rings for, and those that are nobody's business."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from detent.model.clock import SystemClock
from detent.model.service_records import WorkerSeen
from detent.store.sqlite.driver.wake_signal import WakeSignal
from detent.store.sqlite.store import SqliteStore
from detent.store.sqlite.wake import SqliteWake
from tests.contract.jobs.sample_jobs import enqueue
from tests.processes.worker_processes import until

PATIENCE = 60.0
BESIDE = {"shop.db", "shop.db-wal", "shop.db-shm", "shop.db-detent-next", "shop.db-detent-write"}

bells = pytest.mark.skipif(sys.platform != "linux", reason="the system tells nobody that a file was read")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "shop.db"


def opened(path: Path) -> SqliteStore:
    store = SqliteStore(str(path), clock=SystemClock())
    store.ready()
    return store


@pytest.fixture
def store(path: Path) -> Iterator[SqliteStore]:
    with closing(opened(path)) as store:
        yield store


class Waiter:
    """Somebody who waits on a thread of its own, and how often it looked whether there is work."""

    def __init__(self, store: SqliteStore, bell: WakeSignal) -> None:
        self.looks = 0
        self.woken: bool | None = None
        self._is_work = store._is_work
        self.wake = SqliteWake(store._file.version, self._look, bell)
        version = self.wake.version()
        self.thread = threading.Thread(target=self._wait, args=(version,), daemon=True)
        self.thread.start()

    def _look(self) -> bool:
        self.looks += 1
        return self._is_work()

    def _wait(self, version: int) -> None:
        self.woken = self.wake.wait(version, 2 * PATIENCE)

    def ends(self) -> bool:
        """Whether the wait came to an end by being woken."""
        self.thread.join(PATIENCE)
        return self.woken is True


def seen(store: SqliteStore, number: int = 1) -> None:
    """A commit that a worker makes about itself."""
    store.worker_seen(WorkerSeen(id=number, name="w", host="h", pid=1, queues=None, tasks=(), slots=1))


def bell_for(path: Path, kind: str) -> WakeSignal:
    return WakeSignal(str(path)) if kind == "heard" else WakeSignal(None)


@bells
def test_one_bell_is_heard_by_all_who_listen(path: Path, store: SqliteStore) -> None:
    """W1: one of them may not know the task, so no other may take the news away from it."""
    waiters = [Waiter(store, WakeSignal(str(path))) for _ in range(3)]
    with closing(opened(path)) as elsewhere:
        enqueue(elsewhere)
    assert [waiter.ends() for waiter in waiters] == [True] * 3


@bells
def test_a_bell_is_heard_without_a_look_at_the_tables(path: Path, store: SqliteStore) -> None:
    """The first thing that is done after it is the claim."""
    waiter = Waiter(store, WakeSignal(str(path)))
    WakeSignal(str(path)).send()
    assert waiter.ends()
    assert waiter.looks == 0


@pytest.mark.parametrize("kind", ["heard", "unheard"])
def test_what_workers_commit_about_themselves_wakes_nobody(path: Path, store: SqliteStore, kind: str) -> None:
    """Every worker did a claim for each heartbeat of each other one."""
    waiter = Waiter(store, bell_for(path, kind))
    with closing(opened(path)) as elsewhere:
        for number in range(1, 4):
            before = waiter.looks
            seen(elsewhere, number)
            until(lambda before=before: waiter.looks > before, "a look after a commit")  # type: ignore[misc]
        assert waiter.thread.is_alive()
        enqueue(elsewhere)
    assert waiter.ends()


@pytest.mark.parametrize("kind", ["heard", "unheard"])
def test_work_that_nobody_rings_for_is_found(path: Path, store: SqliteStore, kind: str) -> None:
    """J2: inside the caller's own transaction; and where the system has no bells, anybody's."""
    waiter = Waiter(store, bell_for(path, kind))
    with closing(opened(path)) as elsewhere:
        elsewhere.together(lambda verbs: enqueue(verbs))
    assert waiter.ends()
    assert waiter.looks > 0


@bells
def test_a_fork_leaves_the_parents_ears_alone(path: Path, store: SqliteStore) -> None:
    """What is heard by one is not heard by another who has the same ears."""
    version = store.wake.version()
    child = os.fork()
    if child == 0:
        store.wake.version()
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    with closing(opened(path)) as elsewhere:
        enqueue(elsewhere)
    assert store.wake.wait(version, PATIENCE)


@bells
def test_a_lock_file_that_was_replaced_is_listened_to_again(path: Path, store: SqliteStore) -> None:
    """As by somebody who put a copy in its place."""
    store.wake.version()
    old = Path(f"{path}-detent-write")
    old.with_suffix(".new").touch()
    old.with_suffix(".new").replace(old)
    waiter = Waiter(store, WakeSignal(str(path)))
    WakeSignal(str(path)).send()
    assert waiter.ends()


def test_it_makes_no_file_of_its_own(path: Path, store: SqliteStore) -> None:
    enqueue(store)
    store.wake.version()
    assert {one.name for one in path.parent.iterdir()} == BESIDE
    lock = Path(f"{path}-detent-write")
    assert lock.stat().st_mode == path.stat().st_mode


def test_to_ring_where_nothing_is_does_nothing(tmp_path: Path) -> None:
    """A bell never fails, and makes nothing."""
    WakeSignal(str(tmp_path / "nowhere.db")).send()
    WakeSignal(None).send()
    assert list(tmp_path.iterdir()) == []
    assert WakeSignal(str(tmp_path / "nowhere.db")).listen() is None
