"""ids_reserve: ids known before the insert, given out once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from detent.store.contract import Store


def test_a_block_is_consecutive_and_never_given_again(store: Store) -> None:
    """J2: the id is made by the client before the insert."""
    first = store.ids_reserve(10)
    second = store.ids_reserve(1)
    third = store.ids_reserve(500)
    blocks = [range(first, first + 10), range(second, second + 1), range(third, third + 500)]
    ids = [number for block in blocks for number in block]
    assert min(ids) >= 1
    assert len(set(ids)) == len(ids) == 511


def test_callers_at_once_get_blocks_of_their_own(store: Store) -> None:
    with ThreadPoolExecutor(8) as callers:
        firsts = list(callers.map(store.ids_reserve, [7] * 40))
    ids = [number for first in firsts for number in range(first, first + 7)]
    assert len(set(ids)) == len(ids)


def test_ids_grow(store: Store) -> None:
    """A fresh id is above every id given before, so that a block never meets an older one."""
    first = store.ids_reserve(1000)
    assert store.ids_reserve(1) >= first + 1000
