"""service_take: one at a time, under a term that only grows."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from threading import Barrier

from detent.store.contract import Store
from detent.testing.stores import StoreClock, another_store
from tests.contract.concurrent_callers import PATIENCE
from tests.contract.refusals import Untouched

ANA, BOB = 7, 8


def test_one_has_it_and_others_do_not(store: Store, clock: StoreClock, untouched: Untouched) -> None:
    assert store.service_take("schedules", ANA, 10) == 1
    with untouched():
        assert store.service_take("schedules", BOB, 10) is None
    assert store.service_take("retention", BOB, 10) == 1


def test_the_holder_keeps_it_and_its_term(store: Store, clock: StoreClock) -> None:
    store.service_take("schedules", ANA, 10)
    clock.advance(9)
    assert store.service_take("schedules", ANA, 10) == 1
    clock.advance(9)
    assert store.service_take("schedules", BOB, 10) is None


def test_what_ran_out_is_taken_over_and_the_old_holder_steps_down(store: Store, clock: StoreClock) -> None:
    """P-03 of other systems: a leader that was cut off and comes back finds another term than its own."""
    assert store.service_take("schedules", ANA, 10) == 1
    clock.advance(10)
    assert store.service_take("schedules", BOB, 10) == 2
    assert store.service_take("schedules", ANA, 10) is None
    clock.advance(10)
    assert store.service_take("schedules", ANA, 10) == 3


def test_a_holder_that_slept_past_its_lease_begins_a_new_term(store: Store, clock: StoreClock) -> None:
    store.service_take("schedules", ANA, 10)
    clock.advance(11)
    assert store.service_take("schedules", ANA, 10) == 2


def test_a_term_that_ends_too_late_to_be_true_keeps_nobody_out(store: Store, clock: StoreClock) -> None:
    """R3: a service is taken for a minute or so. A row that says otherwise is damaged, and the service goes on."""
    assert store.service_take("schedules", ANA, 86_400) == 1
    assert store.service_take("schedules", BOB, 86_400) is None
    assert store.service_take("schedules", BOB, 10) == 2


def test_of_many_who_ask_at_once_one_has_it(store: Store, store_url: str, clock: StoreClock) -> None:
    """U-05 of other systems: it is the id that counts, and no two processes have the same."""
    together = Barrier(5)

    def ask(holder: int) -> int | None:
        with closing(another_store(store_url, clock)) as elsewhere:
            together.wait(PATIENCE)
            return elsewhere.service_take("schedules", holder, 10)

    with ThreadPoolExecutor(5) as callers:
        terms = list(callers.map(ask, range(5)))
    assert sorted(term is not None for term in terms) == [False] * 4 + [True]
