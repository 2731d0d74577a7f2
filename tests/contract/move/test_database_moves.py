"""database_moves: the move of a database, and the one by which it was filled."""

from __future__ import annotations

from detent.model.move_records import NewMove
from detent.store.contract import Store
from detent.store.move.contract import Place, Row
from detent.store.move.tables import OF_A_NEW_DATABASE, Table, copied_tables
from detent.testing.stores import StoreClock

MOVE = NewMove(move_id="m1", source="here", target="there", identity="0" * 32, actor="ana", reason="it grew")


def kept(store: Store, table: Table) -> list[Row]:
    with store.movable().rows(table, None) as rows:
        return list(rows)


def test_a_database_stays_where_it_is_unless_it_is_moved(store: Store) -> None:
    assert store.database_moves() == []


def test_a_move_out_ends_or_is_cancelled(store: Store, clock: StoreClock) -> None:
    """J15: the database knows where it moves, who moves it, and since when."""
    movable, began = store.movable(), clock.now()
    assert movable.close_out(MOVE) is None
    (row,) = store.database_moves()
    assert (row.direction, row.move_id, row.state, row.place) == ("out", "m1", "moving", "there")
    assert (row.identity, row.actor, row.reason) == ("0" * 32, "ana", "it grew")
    assert (row.began_at, row.ended_at, row.is_closed) == (began, None, True)
    assert movable.cancel("ben", None)
    assert not movable.cancel("ben", None)
    assert store.database_moves() == []
    assert movable.close_out(MOVE) is None
    assert not movable.mark_moved("m2")
    clock.advance(1)
    assert movable.mark_moved("m1")
    assert not movable.mark_moved("m1")
    assert not movable.cancel("ben", None)
    (row,) = store.database_moves()
    assert (row.state, row.began_at, row.ended_at, row.is_closed) == ("moved", began, clock.now(), True)


def test_a_move_in_ends_when_everything_has_arrived(store: Store, clock: StoreClock) -> None:
    movable = store.movable()
    own = {table: kept(store, table) for table in copied_tables() if table.name in OF_A_NEW_DATABASE}
    assert movable.begin_in(MOVE, wiped=False) is None
    (row,) = store.database_moves()
    assert (row.direction, row.state, row.place, row.is_closed) == ("in", "loading", "here", True)
    for table, rows in own.items():
        assert kept(store, table) == []
        here, there = Place(), Place(len(rows), table.key_of(rows[-1]), True)
        assert not movable.write("m2", table, rows, here, there)
        assert movable.write("m1", table, rows, here, there)
        assert not movable.write("m1", table, rows, here, there)
        assert movable.places()[table.name] == there
        assert kept(store, table) == rows
    movable.finish_load("m1", movable.counters())
    assert not movable.open_in("m2")
    clock.advance(1)
    assert movable.open_in("m1")
    assert not movable.open_in("m1")
    (row,) = store.database_moves()
    assert (row.state, row.ended_at, row.is_closed) == ("arrived", clock.now(), False)
    assert store.queue_pause("default", "ana").changed
    assert movable.begin_in(MOVE, wiped=False) == "queue"
