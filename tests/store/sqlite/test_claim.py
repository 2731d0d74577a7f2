"""A claim is written first and read when the lock is let go: what happens in between."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from detent.errors import DatabaseError
from detent.model.clock import SystemClock, TurnableClock
from detent.model.records import Claimed
from detent.store.sqlite.driver.database import Database
from detent.store.sqlite.store import SqliteStore
from tests.contract.jobs.sample_jobs import claim, claim_one, enqueue


def test_what_was_taken_away_before_it_was_read_is_not_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that stands still in between must not begin what is another's by now."""
    clock = TurnableClock()
    with closing(SqliteStore(str(tmp_path / "shop.db"), clock=clock)) as store:
        store.ready()
        enqueue(store, attempts_max=5)
        second: list[Claimed] = []
        reading = Database.reading

        def late(database: Database) -> object:
            monkeypatch.setattr(Database, "reading", reading)
            clock.advance(3600)
            assert store.lease_reap(10).leases == 1
            clock.advance(3600)
            second.append(claim_one(store))
            return reading(database)

        monkeypatch.setattr(Database, "reading", late)
        assert claim(store, lease_id=7_000_001) == []
        assert [held.attempt for held in second] == [2]


def test_what_was_claimed_and_could_not_be_read_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The claimer asks so whenever an answer did not come."""
    with closing(SqliteStore(str(tmp_path / "shop.db"), clock=SystemClock())) as store:
        store.ready()
        job_id = enqueue(store)

        def broken(database: Database) -> object:
            raise DatabaseError(database.name, "gone")

        with monkeypatch.context() as patched:
            patched.setattr(Database, "reading", broken)
            with pytest.raises(DatabaseError, match="gone"):
                claim(store, lease_id=7_000_001)
        assert [held.job_id for held in store.claim_find(7_000_001)] == [job_id]
