"""Fair turns: between the threads of a process, and between processes."""

from __future__ import annotations

import fcntl
import os
import signal
import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest

from detent.errors import DatabaseBusy, WrongPlace
from detent.model.clock import SystemClock
from detent.store.sqlite.driver.database import Database
from detent.store.sqlite.driver.write_lock import FairLock, WriteLock
from detent.store.sqlite.store import SqliteStore
from tests.store.sqlite.other_process import SECONDS_MAX, Process, eventually

GREEDY = """
def first(verbs):
    say("inside")
    hear()
store.together(first)
for n in range(200):
    store.ids_reserve(1)
say("done")
"""
WAITS = """
hear()
say(str(store.ids_reserve(0)))
"""
FROZEN = """
def stay(verbs):
    say("inside")
    hear()
store.together(stay)
"""


def opened(path: Path, **options: float) -> SqliteStore:
    store = SqliteStore(str(path), clock=SystemClock(), **options)
    store.ready()
    return store


def is_locked(path: Path) -> bool:
    file = os.open(path, os.O_RDWR)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(file)
    return False


@pytest.mark.parametrize("trial", range(3))
def test_a_waiting_process_is_passed_by_no_more_than_one_transaction(tmp_path: Path, trial: int) -> None:
    """A writer in a tight loop: whoever asked while its transaction ran comes next, before any other of the loop's."""
    path = tmp_path / "t.db"
    opened(path).close()
    with Process(GREEDY, path) as greedy, Process(WAITS, path) as other:
        assert greedy.hear() == "inside"
        other.say()
        # Inside its transaction the greedy one holds `write` only; `next` is the other's, which now waits.
        eventually(lambda: is_locked(Path(f"{path}-detent-next")))
        greedy.say()
        seen = int(other.hear())
        assert greedy.hear() == "done"
    assert seen - 1 <= 1, f"{seen - 1} transactions passed a waiting one"


def test_a_frozen_writer_makes_others_fail_in_time(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    store = opened(path, wait_seconds_max=0.05)
    with Process(FROZEN, path) as frozen:
        assert frozen.hear() == "inside"
        with pytest.raises(DatabaseBusy, match="another process has been writing"):
            store.ids_reserve(1)
        frozen.say()
        frozen.ends_well()
    assert store.ids_reserve(1) == 1
    store.close()


def test_who_stands_still_at_the_head_of_the_line_makes_others_fail_in_time(tmp_path: Path) -> None:
    """J7: stopped with SIGSTOP while it was next. They waited for ever; now they say what is the matter, and nothing is
    left of their waiting when it goes on."""
    path = tmp_path / "t.db"
    store = opened(path, wait_seconds_max=0.05)
    with Process(FROZEN, path) as writer, Process(WAITS, path) as first:
        assert writer.hear() == "inside"
        first.say()
        eventually(lambda: is_locked(Path(f"{path}-detent-next")))
        os.kill(first.pid, signal.SIGSTOP)
        try:
            writer.say()
            writer.ends_well()
            for _ in range(3):
                with pytest.raises(DatabaseBusy, match="has waited to write"):
                    store.ids_reserve(1)
            assert [thread.name for thread in threading.enumerate()].count("detent-flock") == 1
        finally:
            os.kill(first.pid, signal.SIGCONT)
        first.hear()
        first.ends_well()
    eventually(lambda: "detent-flock" not in [thread.name for thread in threading.enumerate()])
    assert not is_locked(Path(f"{path}-detent-next"))
    assert store.ids_reserve(1) == 1
    store.close()


def test_threads_take_turns_in_the_order_of_asking() -> None:
    lock = FairLock()
    order: list[int] = []

    def take(number: int) -> None:
        assert lock.acquire(SECONDS_MAX)
        order.append(number)
        lock.release()

    lock.acquire(SECONDS_MAX)
    threads = [threading.Thread(target=take, args=(number,)) for number in range(8)]
    for ahead, thread in enumerate(threads):
        thread.start()
        eventually(lambda ahead=ahead: lock.waiting == ahead + 1)  # type: ignore[misc]
    lock.release()
    for thread in threads:
        thread.join(SECONDS_MAX)
    assert order == list(range(8))


def test_who_gives_up_waiting_is_not_waited_for() -> None:
    lock = FairLock()
    lock.acquire(SECONDS_MAX)
    outcome: list[bool] = []
    thread = threading.Thread(target=lambda: outcome.append(lock.acquire(0.001)))
    thread.start()
    thread.join(SECONDS_MAX)
    assert outcome == [False]
    lock.release()
    assert lock.acquire(0)


def test_a_thread_that_writes_already_is_told_at_once(tmp_path: Path) -> None:
    """Waiting for oneself would last for ever."""
    store = opened(tmp_path / "t.db")
    with pytest.raises(WrongPlace, match="same thread"):
        store.together(lambda verbs: store.ids_reserve(1))
    assert store.ids_reserve(1) == 1
    store.close()


def test_all_waits_of_a_call_have_one_deadline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """R4: a call waited for its thread's turn, for its process's turn, and for SQLite's own lock, each for the whole
    time; behind a commit block once more."""
    asked: list[float] = []
    acquire = WriteLock.acquire

    def spied(self: WriteLock, timeout: float) -> None:
        asked.append(timeout)
        acquire(self, timeout)

    monkeypatch.setattr(WriteLock, "acquire", spied)
    database = Database(str(tmp_path / "t.db"), wait_seconds_max=SECONDS_MAX)
    database.create_file()
    for waits in (
        lambda: database.write(lambda connection: None),
        lambda: database.group_commit.join(lambda executor: None),
    ):
        with database.writing():
            asked.clear()
            thread = threading.Thread(target=waits)
            thread.start()
            eventually(lambda: database._threads.waiting == 1)
        thread.join(SECONDS_MAX)
        assert len(asked) == 1
        assert asked[0] < SECONDS_MAX
    with database.writing(database.wait_until() - SECONDS_MAX):
        assert asked[-1] == 0.0
    database.close()


def test_a_lock_of_sqlite_itself_is_waited_for_until_the_same_deadline(tmp_path: Path) -> None:
    """R4: a call that had waited for its turn already waited for the whole time once more."""
    path = tmp_path / "t.db"
    database = Database(str(path), wait_seconds_max=3600.0)
    database.create_file()
    database.write(lambda connection: None)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with (
            pytest.raises(DatabaseBusy, match="holds the write lock"),
            database.writing(database.wait_until() - 3600.0),
        ):
            pass
    database.close()
