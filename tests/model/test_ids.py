"""Ids are never given out twice, also not after a fork."""

from __future__ import annotations

import json
import os
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detent.errors import InvalidInput
from detent.model.ids import Ids, ReservedIds, SeededIds


class Sequence:
    """What a store does: reserves consecutive numbers and remembers how many were asked for."""

    def __init__(self) -> None:
        self.next = 1
        self.asked: list[int] = []

    def reserve(self, count: int) -> int:
        self.asked.append(count)
        first, self.next = self.next, self.next + count
        return first


def test_one_reservation_serves_a_whole_block() -> None:
    """J2: the client knows ids before the insert, for one round trip a block."""
    sequence = Sequence()
    ids = ReservedIds(sequence.reserve, block=10)
    assert [ids.take()[0] for _ in range(10)] == list(range(1, 11))
    assert sequence.asked == [10]
    assert ids.take() == [11]
    assert sequence.asked == [10, 20]


def test_reservations_grow_up_to_a_bound() -> None:
    sequence = Sequence()
    ids = ReservedIds(sequence.reserve, block=10)
    assert [ids.take()[0] for _ in range(700)] == list(range(1, 701))
    assert sequence.asked == [10, 20, 40, 80, 160, 160, 160, 160]


def test_a_take_over_the_edge_uses_up_the_block_first() -> None:
    sequence = Sequence()
    ids = ReservedIds(sequence.reserve, block=10)
    ids.take(7)
    sequence.reserve(100)  # another client
    assert ids.take(5) == [8, 9, 10, 111, 112]
    assert ids.take() == [113]


def test_a_big_take_reserves_exactly_what_is_missing() -> None:
    sequence = Sequence()
    ids = ReservedIds(sequence.reserve, block=10)
    assert ids.take(25) == list(range(1, 26))
    ids.take(4)
    assert len(ids.take(116)) == 116
    assert sequence.asked == [25, 20, 100]


def test_a_failed_reservation_takes_nothing() -> None:
    sequence = Sequence()
    fails = False

    def reserve(count: int) -> int:
        if fails:
            raise ConnectionError
        return sequence.reserve(count)

    ids = ReservedIds(reserve, block=3)
    ids.take(2)
    fails = True
    with pytest.raises(ConnectionError):
        ids.take(2)
    assert ids.take() == [3]


@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 30)), max_size=30), st.integers(1, 12))
def test_two_clients_never_share_an_id(takes: list[tuple[int, int]], block: int) -> None:
    sequence = Sequence()
    clients: list[Ids] = [ReservedIds(sequence.reserve, block), ReservedIds(sequence.reserve, block)]
    given_out: list[list[int]] = [[], []]
    for who, count in takes:
        taken = clients[who].take(count)
        assert len(taken) == count
        given_out[who] += taken
    assert all(mine == sorted(mine) for mine in given_out)
    assert len({*given_out[0], *given_out[1]}) == len(given_out[0]) + len(given_out[1])


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # newer Pythons warn where the runner has threads
def test_a_fork_drops_the_block_and_the_nonce() -> None:
    """J2: a child that went on with its parent's block would give out the parent's ids."""
    sequence = Sequence()
    ids = ReservedIds(sequence.reserve, block=10, seed=7)
    assert ids.take(2) == [1, 2]
    nonce = ids.nonce()
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            told = json.dumps([ids.take(2), ids.nonce(), sequence.asked])
            os.write(write_end, told.encode())
        finally:
            os._exit(0)
    os.close(write_end)
    with os.fdopen(read_end) as pipe:
        taken, child_nonce, asked = json.loads(pipe.read())
    os.waitpid(child, 0)
    assert taken == [11, 12]
    assert asked == [10, 10]
    assert child_nonce != nonce
    assert ids.take() == [3]
    assert ids.nonce() == nonce


def test_the_lock_it_is_given_is_held_while_it_takes() -> None:
    lock = threading.Lock()
    held: list[bool] = []

    def reserve(count: int) -> int:
        held.append(lock.locked())
        return 1

    ReservedIds(reserve, lock=lock).take()
    assert held == [True]
    assert not lock.locked()


def test_the_nonce_is_fixed_and_fits_63_bits() -> None:
    for ids in (ReservedIds(Sequence().reserve), SeededIds(5)):
        assert 0 <= ids.nonce() < 2**63
        assert ids.nonce() == ids.nonce()
    assert ReservedIds(Sequence().reserve).nonce() != ReservedIds(Sequence().reserve).nonce()


@given(st.integers())
def test_chance_is_seedable(seed: int) -> None:
    """J9: the random part is seedable."""
    one, same, kept = SeededIds(seed), SeededIds(seed), ReservedIds(Sequence().reserve, seed=seed)
    draws = [one.random() for _ in range(5)]
    assert draws == [same.random() for _ in range(5)]
    assert one.nonce() == same.nonce()
    assert all(0 <= draw < 1 for draw in [*draws, *(kept.random() for _ in range(5))])
    assert ReservedIds(Sequence().reserve, seed=seed).random() == ReservedIds(Sequence().reserve, seed=seed).random()


def test_seeded_ids_count_from_where_they_are_told() -> None:
    ids = SeededIds(1, start=100)
    assert ids.take(3) == [100, 101, 102]
    assert ids.take(0) == []
    assert ids.take() == [103]


def test_nonsense_is_refused() -> None:
    for ids in (ReservedIds(Sequence().reserve), SeededIds(5)):
        with pytest.raises(InvalidInput):
            ids.take(-1)
    with pytest.raises(InvalidInput):
        ReservedIds(Sequence().reserve, block=0)
