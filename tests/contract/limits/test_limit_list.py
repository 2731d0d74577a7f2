"""limit_list: every limit as it stands."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from detent.model.limit_records import LimitFilter, LimitRow, NewLimit
from detent.store.contract import Store
from detent.testing.stores import StoreClock
from tests.contract.jobs.sample_jobs import claim, enqueue
from tests.contract.refusals import Untouched


def test_a_limit_says_what_it_is_and_what_runs(store: Store, clock: StoreClock, untouched: Untouched) -> None:
    store.limit_put(NewLimit(key="shop", rate=2, per=4, burst=3, tasks=("b", "mail.send", "a"), queues=("q",)))
    store.limit_put(NewLimit(key="a", concurrency_max=1))
    enqueue(store)
    claim(store)
    clock.advance(1)
    with untouched():
        found = store.limit_list()
    plain = LimitRow(
        key="a",
        rate=None,
        per=1,
        burst=1,
        concurrency_max=1,
        tasks=(),
        queues=(),
        tokens=1,
        running=0,
        paused_until=None,
        throttled=0,
        open_until=None,
    )
    bounds = {"rate": 2, "per": 4, "burst": 3, "concurrency_max": None}
    members = {"tasks": ("a", "b", "mail.send"), "queues": ("q",)}
    assert found == [plain, replace(plain, key="shop", tokens=2.5, running=1, **bounds, **members)]


def test_limits_are_listed_by_key_task_and_queue_and_in_pages(store: Store, untouched: Untouched) -> None:
    """J12: of keys there may be very many."""
    store.limit_put(NewLimit(key="shop", concurrency_max=5, tasks=("mail.send",)))
    store.limit_put(NewLimit(key="queue:slow", concurrency_max=5, queues=("slow",)))
    for number in range(4):
        enqueue(store, limit_key=f"shop:{number}")
    claim(store)

    def keys(chosen: LimitFilter, *page: Any) -> list[str]:
        return [row.key for row in store.limit_list(chosen, *page)]

    with untouched():
        assert keys(LimitFilter()) == ["queue:slow", "shop", "shop:0", "shop:1", "shop:2", "shop:3"]
        assert keys(LimitFilter(), "shop:0", 2) == ["shop:1", "shop:2"]
        assert keys(LimitFilter(keys=("shop:2", "shop:9", "shop:1"))) == ["shop:1", "shop:2"]
        assert keys(LimitFilter(keys=("shop:2",), tasks=("mail.send",), queues=("slow",))) == [
            *("queue:slow", "shop", "shop:2")
        ]
        assert keys(LimitFilter(tasks=("mail.send",), queues=("slow",)), "", 1) == ["queue:slow"]
        assert keys(LimitFilter(tasks=("other",))) == []
