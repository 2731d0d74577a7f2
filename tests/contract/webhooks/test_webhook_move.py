"""webhook_move: one of those who read the same place moves it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from detent.store.contract import Store, Verbs
from tests.contract.refusals import Untouched


def test_a_place_moves_from_where_it_was(store: Store) -> None:
    assert store.webhook_move("erp", None, "1")
    assert store.webhook_move("erp", "1", "2")
    assert store.webhook_place("erp") == "2"


def test_a_place_that_another_worker_has_moved_stays(store: Store, untouched: Untouched) -> None:
    store.webhook_move("erp", None, "1")
    store.webhook_move("erp", "1", "2")
    with untouched():
        assert not store.webhook_move("erp", None, "3")
        assert not store.webhook_move("erp", "1", "3")
        assert not store.webhook_move("none", "1", "3")


def test_of_many_one_moves_it(store: Store) -> None:
    store.webhook_move("erp", None, "0")
    with ThreadPoolExecutor(8) as threads:
        moved = list(threads.map(lambda number: store.webhook_move("erp", "0", str(number + 1)), range(16)))
    assert moved.count(True) == 1
    assert store.webhook_place("erp") == str(moved.index(True) + 1)


def test_what_fails_after_it_undoes_it(store: Store) -> None:
    """The deliveries are enqueued in the same transaction."""
    store.webhook_move("erp", None, "0")

    def fail(verbs: Verbs) -> None:
        assert verbs.webhook_move("erp", "0", "1")
        raise RuntimeError("killed in between")

    with pytest.raises(RuntimeError):
        store.together(fail)
    assert store.webhook_place("erp") == "0"
