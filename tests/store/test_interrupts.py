"""An interrupt (Ctrl-C) at any line of the writer, or of the write lock, gives up that caller only."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from detent.model.clock import SystemClock
from detent.store.enqueue_writer import EnqueueWriter
from detent.store.open import open_store
from detent.store.sqlite.driver.write_lock import FairLock
from detent.store.sqlite.store import SqliteStore
from tests.app.shop import until
from tests.store.interrupts import interrupted_at
from tests.store.sqlite.test_write_lock import is_locked
from tests.store.writing import DEADLINE, Step, Watched, held

WRITER = "store/group_writer.py"
LINES_MIN = 15
"""Fewer lines than this are not what was meant to be interrupted."""


def writer_over(store: SqliteStore) -> Any:
    """It takes items that are no jobs, too."""
    watched: Any = Watched(store)
    return EnqueueWriter(watched)


def _stand(writer: EnqueueWriter, many: int) -> bool:
    return len(writer._queue) >= many


def _stands_or_is_done(writer: EnqueueWriter, leader: Future[None]) -> bool:
    return leader.done() or _stand(writer, 1)


def _waits_or_is_done(turn: FairLock, asks: Future[None]) -> bool:
    return asks.done() or turn.waiting == 1


@pytest.fixture
def crowd() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(8) as threads:
        yield threads


@pytest.fixture
def file_store(tmp_path: Path) -> Iterator[SqliteStore]:
    store = open_store(f"sqlite:///{tmp_path}/t.db", clock=SystemClock())
    assert isinstance(store, SqliteStore)
    store.ready()
    yield store
    store.close()


def test_a_lone_caller_that_is_interrupted_anywhere_wedges_nobody(
    file_store: SqliteStore, crowd: ThreadPoolExecutor
) -> None:
    """After an interrupt between the decision to lead alone and the `try`, every later enqueue hung for good."""
    for nth in count(1):
        writer = writer_over(file_store)
        with interrupted_at(nth, WRITER) as interrupt:
            writer.write(["a"])
        assert crowd.submit(writer.write, ["b"]).result(DEADLINE) == ["b"], interrupt.fired_at
        crowd.submit(writer.close).result(DEADLINE)
        if interrupt.fired_at is None:
            break
    assert nth > LINES_MIN


def test_whoever_came_while_a_lone_caller_was_interrupted_is_served(
    file_store: SqliteStore, crowd: ThreadPoolExecutor
) -> None:
    for nth in count(1):
        writer = writer_over(file_store)
        waits: list[Any] = []

        def while_another_comes(writer: Any = writer, waits: Any = waits) -> None:
            waits.append(crowd.submit(writer.write, ["b"]))
            until(lambda: len(writer._queue) == 1)

        step: Any = Step(while_another_comes)
        with interrupted_at(nth, WRITER) as interrupt:
            writer.write([step])
        for one in waits:
            assert one.result(DEADLINE) == ["b"], interrupt.fired_at
        assert crowd.submit(writer.write, ["c"]).result(DEADLINE) == ["c"], interrupt.fired_at
        if interrupt.fired_at is None:
            break
    assert nth > LINES_MIN


def test_the_batch_of_a_leader_that_is_interrupted_anywhere_is_written(
    file_store: SqliteStore, crowd: ThreadPoolExecutor
) -> None:
    """One from the line leads for two others, one of whom does not wait on a thread."""
    for nth in count(1):
        writer = writer_over(file_store)
        fired: list[str | None] = []

        def lead(nth: int = nth, writer: Any = writer, fired: list[str | None] = fired) -> None:
            with interrupted_at(nth, WRITER) as interrupt:
                writer.write(["a"])
            fired.append(interrupt.fired_at)

        with held(writer, crowd):
            leader = crowd.submit(lead)
            until(partial(_stands_or_is_done, writer, leader))
            others: list[Any] = [crowd.submit(writer.write, ["b"]), writer.submit(["c"])]
            until(partial(_stand, writer, 2))
        leader.result(DEADLINE)
        assert [one.result(DEADLINE) for one in others] == [["b"], ["c"]], fired
        assert crowd.submit(writer.write, ["d"]).result(DEADLINE) == ["d"], fired
        crowd.submit(writer.close).result(DEADLINE)
        if fired == [None]:
            break
    assert nth > 2 * LINES_MIN


def test_a_writer_of_a_file_that_is_interrupted_anywhere_leaves_no_lock(
    file_store: SqliteStore, tmp_path: Path, crowd: ThreadPoolExecutor
) -> None:
    """Between two steps of taking its turn, a writer kept the turn of its process, or the lock files, for good."""
    for nth in count(1):
        with interrupted_at(nth, "driver/write_lock.py", "driver/database.py") as interrupt:
            file_store.ids_reserve(1)
        locked = [name for name in ("next", "write") if is_locked(tmp_path / f"t.db-detent-{name}")]
        assert locked == [], interrupt.fired_at
        assert crowd.submit(file_store.ids_reserve, 1).result(DEADLINE), interrupt.fired_at
        assert file_store.ids_reserve(1), interrupt.fired_at
        if interrupt.fired_at is None:
            break
    assert nth > 2 * LINES_MIN


def test_a_writer_that_waits_for_its_turn_and_is_interrupted_anywhere_stands_in_nobodys_way(
    file_store: SqliteStore, crowd: ThreadPoolExecutor
) -> None:
    for nth in count(1):
        inside, go = threading.Event(), threading.Event()

        def stay(_: Any, inside: threading.Event = inside, go: threading.Event = go) -> None:
            inside.set()
            assert go.wait(DEADLINE)

        fired: list[str | None] = []

        def ask(nth: int = nth, fired: list[str | None] = fired) -> None:
            with interrupted_at(nth, "driver/write_lock.py", "driver/database.py") as interrupt:
                file_store.ids_reserve(1)
            fired.append(interrupt.fired_at)

        first = crowd.submit(file_store.together, stay)
        assert inside.wait(DEADLINE)
        second = crowd.submit(ask)
        turn = file_store._file._threads
        until(partial(_waits_or_is_done, turn, second))
        third = crowd.submit(file_store.ids_reserve, 1)
        go.set()
        first.result(DEADLINE)
        second.result(DEADLINE)
        assert third.result(DEADLINE), fired
        if fired == [None]:
            break
    assert nth > 2 * LINES_MIN
