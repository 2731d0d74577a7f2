"""Upgrades wait briefly for locks, again and again, and show what they have done."""

from __future__ import annotations

from contextlib import closing

import psycopg
import pytest

from detent.errors import DatabaseBusy, DatabaseError
from detent.store.open import open_store
from detent.store.postgres import upgrade
from tests.store.postgres.connections import as_user, run_sql

DROP_GUARD = "DROP TRIGGER event_keep ON detent.event"


def test_a_lock_that_is_not_to_be_had_is_given_up_and_the_next_call_continues(
    postgres_ready_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """L8: until then everything else is in place already, and an older release would refuse."""
    monkeypatch.setattr(upgrade, "TRIES_MAX", 2)
    monkeypatch.setattr(upgrade, "LOCK_MILLISECONDS_MAX", 20)
    run_sql(postgres_ready_url, DROP_GUARD, "DROP FUNCTION detent.now_v1()")
    with closing(open_store(postgres_ready_url)) as store, psycopg.connect(postgres_ready_url) as reader:
        reader.execute("LOCK TABLE detent.event IN SHARE UPDATE EXCLUSIVE MODE")
        seen: list[str] = []
        with pytest.raises(
            DatabaseBusy, match=r"no lock for trigger event_keep in 2 tries.*`detent migrate` continues"
        ):
            store.migrate(seen.append)
        assert run_sql(postgres_ready_url, "SELECT complete FROM detent.installed") == [(False,)]
        reader.rollback()
        assert store.migrate(seen.append) == ["trigger event_keep", "function now_v1"]
        assert seen == ["trigger event_keep", "function now_v1"]
        assert run_sql(postgres_ready_url, "SELECT complete FROM detent.installed") == [(True,)]
        assert store.verify() == []


def test_a_reader_that_ends_in_time_is_waited_for(postgres_ready_url: str) -> None:
    """L8: the trigger is put in place when the lock is free."""
    run_sql(postgres_ready_url, DROP_GUARD)
    with closing(open_store(postgres_ready_url)) as store, psycopg.connect(postgres_ready_url) as reader:
        reader.execute("LOCK TABLE detent.event IN SHARE UPDATE EXCLUSIVE MODE")
        tries: list[float] = []
        clock = store._clock  # type: ignore[attr-defined]

        class Clock:
            def sleep(self, seconds: float) -> None:
                tries.append(seconds)
                if len(tries) == 2:
                    reader.rollback()
                clock.sleep(0.01)

        store._clock = Clock()  # type: ignore[attr-defined]
        assert store.migrate() == ["trigger event_keep"]
    assert tries == [0.05, 0.1]


def test_only_the_owner_may_migrate(postgres_ready_url: str) -> None:
    """S2: what was found and who may is said; nothing is changed."""
    run_sql(postgres_ready_url, DROP_GUARD, "CREATE ROLE t_upgrade_guest LOGIN")
    run_sql(postgres_ready_url, "GRANT USAGE ON SCHEMA detent TO t_upgrade_guest")
    run_sql(postgres_ready_url, "GRANT ALL ON ALL FUNCTIONS IN SCHEMA detent TO t_upgrade_guest")
    try:
        with (
            closing(open_store(as_user(postgres_ready_url, "t_upgrade_guest"))) as store,
            pytest.raises(DatabaseError, match="only the owner of its schema detent may migrate it"),
        ):
            store.migrate()
    finally:
        run_sql(postgres_ready_url, "DROP OWNED BY t_upgrade_guest", "DROP ROLE t_upgrade_guest")
