"""record_feed: readers of the record miss no line and see none twice."""

from __future__ import annotations

import random
from contextlib import closing
from datetime import timedelta

import pytest

from detent.errors import InvalidInput
from detent.model.records import RecordFeedPage
from detent.store.contract import Store
from detent.testing.stores import StoreClock, plain_connection
from tests.contract.jobs.sample_jobs import quarantined
from tests.contract.refusals import Untouched


def ids(page: RecordFeedPage) -> list[str]:
    return [line.row.entity_id for line in page.lines]


def test_a_reader_continues_where_it_stopped(store: Store, untouched: Untouched) -> None:
    """From now on, from the beginning, and after every single line; each with its tenant."""
    assert store.record_feed().lines == []
    store.queue_pause("before", "ana")
    start = store.record_feed().next
    dead = quarantined(store)
    for name in ("a", "b", "c"):
        store.queue_pause(name, "ana", "down")
    store.job_retry([dead], "ana", "again")
    with untouched():
        page = store.record_feed(start)
        assert ids(page) == ["a", "b", "c", str(dead)]
        assert (page.more, page.pruned) == (False, False)
        assert page.lines[-1].row.trigger == "retry"
        for place, line in enumerate(page.lines):
            assert ids(store.record_feed(line.cursor)) == ids(page)[place + 1 :]
        assert ids(store.record_feed("0"))[0] == "before"
        assert ids(store.record_feed(page.next)) == []
        small = store.record_feed(start, 2)
        assert (ids(small), small.more) == (["a", "b"], True)
        assert ids(store.record_feed(small.next, 2)) == ["c", str(dead)]
    store.queue_resume("a", "ben")
    assert [line.row.actor for line in store.record_feed(page.next).lines] == ["ben"]


def test_a_line_that_commits_late_is_not_lost(store: Store, store_url: str) -> None:
    """O-02: the first writer commits after the second one. A reader that asks for numbers above the last one it saw
    would never see the first line. An open transaction delays its own lines only."""
    start = store.record_feed().next
    with closing(plain_connection(store_url)) as connection:
        held = store.on(connection)
        held.queue_pause("first", "ana")
        if store.ids_by_transaction:  # one writer: the second one waits
            connection.commit()
        store.queue_pause("second", "ben")
        page = store.record_feed(start)
        assert ids(page)[-1] == "second"
        assert ids(store.record_feed(page.lines[-1].cursor)) == []
        from_now = store.record_feed().next
        connection.commit()
        seen = [*ids(page), *ids(store.record_feed(page.next))]
        assert sorted(seen) == ["first", "second"]
        if not store.ids_by_transaction:
            assert ids(store.record_feed(from_now)) == ["first"]
        assert ids(store.record_feed(store.record_feed(page.next).next)) == []


def test_numbers_that_were_rolled_back_do_not_stay_open(store: Store, store_url: str) -> None:
    start = store.record_feed().next
    with closing(plain_connection(store_url)) as connection:
        store.on(connection).queue_pause("never", "ana")
        connection.rollback()
    store.queue_pause("a", "ana")
    page = store.record_feed(start)
    assert (ids(page), page.next.isdecimal()) == (["a"], True)


def test_random_writers_and_readers(store: Store, store_url: str) -> None:
    """Writers commit in any order or roll back. Readers read pages of any size and start again after any line. Each
    reader sees each committed line once."""
    if store.ids_by_transaction:  # one writer: there is no other order
        return
    chance = random.Random(17)
    start = store.record_feed().next
    places, seen = [start] * 3, [list[str]() for _ in range(3)]
    committed: set[str] = set()
    writers = [plain_connection(store_url) for _ in range(4)]
    pending: list[list[str]] = [[] for _ in writers]

    def read(reader: int) -> None:
        page = store.record_feed(places[reader], chance.randint(1, 5))
        kept = chance.randint(0, len(page.lines)) if chance.random() < 0.3 else len(page.lines)
        seen[reader] += ids(page)[:kept]
        if kept == len(page.lines):
            places[reader] = page.next
        elif kept:
            places[reader] = page.lines[kept - 1].cursor

    for step in range(150):
        one = chance.randrange(len(writers))
        match chance.choice(("write", "write", "commit", "roll back", "read", "read")):
            case "write":
                pending[one].append(f"q{step}")
                store.on(writers[one]).queue_pause(f"q{step}", "ana")
            case "commit":
                writers[one].commit()
                committed.update(pending[one])
                pending[one] = []
            case "roll back":
                writers[one].rollback()
                pending[one] = []
            case _:
                read(chance.randrange(3))
    for one, connection in enumerate(writers):
        connection.commit()
        committed.update(pending[one])
        connection.close()
    for reader in range(3):
        for _ in range(200):
            read(reader)
        assert places[reader].isdecimal()
        assert len(seen[reader]) == len(committed)
        assert set(seen[reader]) == committed


def test_many_open_numbers_make_the_feed_wait(store: Store, store_url: str) -> None:
    """A cursor has a limit. Beyond it the feed waits until the open transaction ends, and then loses nothing."""
    if store.ids_by_transaction:
        return
    start, count = store.record_feed().next, 230
    with closing(plain_connection(store_url)) as connection:
        held = store.on(connection)
        for n in range(count):
            held.queue_pause(f"held{n}", "ana")
            store.queue_pause(f"free{n}", "ben")
        page = store.record_feed(start, 1000)
        assert 150 < len(page.lines) < count
        assert not page.more
        assert store.record_feed(page.next).lines == []
        connection.commit()
    seen = ids(page)
    while (page := store.record_feed(page.next, 50)).lines:
        seen += ids(page)
    assert len(seen) == len(set(seen)) == 2 * count
    assert page.next.isdecimal()


def test_a_reader_learns_that_retention_was_faster(store: Store, clock: StoreClock) -> None:
    """And not if nothing was deleted after its place. Numbers of deleted lines are not used again."""
    store.queue_pause("a", "ana")
    page = store.record_feed("0")
    clock.advance(60)
    for _ in range(3):
        store.queue_resume("a", "ana")
        store.queue_pause("a", "ana")
    clock.advance(3600)
    newest = store.record_feed(page.next)
    assert len(newest.lines) == 6
    store.log_prune(clock.now() - timedelta(seconds=60), 0, 100, "retention")
    assert not store.record_feed(newest.next).pruned
    left = store.record_feed(page.next)
    assert (left.pruned, len(left.lines)) == (True, 1)
    assert not store.record_feed("0").pruned


def test_places_that_are_none_are_refused(store: Store) -> None:
    for wrong in ("", "x", "-1", "1~", "5~3.1", "5~7", "9" * 30, "1~0", "5~1.3~2"):
        with pytest.raises(InvalidInput):
            store.record_feed(wrong)
    with pytest.raises(InvalidInput, match="newest line"):
        store.record_feed("1000")
    for wrong_limit in (0, 1001):
        with pytest.raises(InvalidInput):
            store.record_feed("0", wrong_limit)
