"""limit_list: every limit as it stands."""

from __future__ import annotations

from msgspec.structs import replace

from detent.model.limit_records import LimitRow, NewLimit
from detent.store.contract import Store
from detent.testing.stores import StoreClock
from tests.contract.kit import Untouched, claim, enqueue


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
