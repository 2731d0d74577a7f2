"""worker_seen: a worker lives, and says what it knows and holds."""

from __future__ import annotations

from typing import Any

import msgspec

from detent.model.service_records import WorkerRow, WorkerSeen
from detent.store.contract import Store
from detent.testing.stores import StoreClock


def worker(worker_id: int = 7, **overrides: Any) -> WorkerSeen:
    """A worker as it would say of itself."""
    fields: dict[str, Any] = {
        "name": "ana",
        "host": "h",
        "pid": 12,
        "queues": ("mail", 'q"\\ü'),
        "tasks": ("mail.send",),
    }
    return WorkerSeen(id=worker_id, slots=16, **fields | overrides)


def test_it_is_on_the_list_as_it_says(store: Store, clock: StoreClock) -> None:
    """W3: name, place, what it serves, what it holds, since when."""
    began = clock.now()
    store.worker_seen(worker(running=3))
    clock.advance(1)
    store.worker_seen(worker(running=5, stopping=True, queues=None))
    said = msgspec.structs.asdict(worker(running=5, stopping=True, queues=None))
    assert store.worker_list(10) == [WorkerRow(**said, started_at=began, seen_at=clock.now())]


def test_workers_of_one_name_are_two(store: Store, clock: StoreClock) -> None:
    """W3: a name is for people; the id tells workers apart."""
    store.worker_seen(worker(8))
    store.worker_seen(worker(7))
    assert [row.id for row in store.worker_list(10)] == [7, 8]
    assert store.worker_list(10)[0].queues == ("mail", 'q"\\ü')


def test_who_was_not_seen_for_a_day_is_forgotten_when_a_new_one_comes(store: Store, clock: StoreClock) -> None:
    store.worker_seen(worker(7))
    clock.advance(86_401)
    store.worker_seen(worker(8))
    assert [row.id for row in store.worker_list(10**6)] == [8]
