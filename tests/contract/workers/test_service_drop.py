"""service_drop: let others have it at once."""

from __future__ import annotations

from detent.store.contract import Store
from detent.testing.stores import StoreClock
from tests.contract.refusals import Untouched


def test_the_next_one_need_not_wait(store: Store, clock: StoreClock) -> None:
    store.service_take("schedules", 7, 10)
    store.service_drop("schedules", 7)
    assert store.service_take("schedules", 8, 10) == 2


def test_only_the_holder_can_let_go(store: Store, clock: StoreClock, untouched: Untouched) -> None:
    store.service_take("schedules", 7, 10)
    with untouched():
        store.service_drop("schedules", 8)
        store.service_drop("nobody has it", 7)
    assert store.service_take("schedules", 8, 10) is None
