"""The connection that listens."""

from __future__ import annotations

import logging
import threading
from contextlib import closing

import pytest

from detent.store.jobs.contract import ClaimTerms
from detent.store.open import open_store
from detent.store.postgres.store import PostgresStore
from tests.contract.jobs.sample_jobs import enqueue
from tests.store.postgres.connections import run_sql

PATIENCE = 60.0
"""Seconds after which a wait that nobody ends is a failure."""

LISTENERS = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%'"
CLAIMERS = """
SELECT pid FROM pg_stat_activity
 WHERE datname = current_database() AND pid <> pg_backend_pid() AND query LIKE '%job_claim_v2%'
"""
END_LISTENERS = f"SELECT count(pg_terminate_backend(pid, 10000)) FROM ({LISTENERS}) AS found"


def test_a_listener_that_was_cut_off_listens_again_before_the_next_wait(postgres_ready_url: str) -> None:
    """W1: whoever was woken by the loss itself finds it out when it waits again."""
    with closing(open_store(postgres_ready_url)) as store:
        store.ready()
        version = store.wake.version()
        assert store.wake.is_sure
        assert run_sql(postgres_ready_url, END_LISTENERS) == [(1,)]
        assert store.wake.wait(version, PATIENCE)
        version = store.wake.version()
        assert store.wake.is_sure
        actor = threading.Thread(target=enqueue, args=(store,))
        actor.start()
        assert store.wake.wait(version, PATIENCE)
        actor.join()


def terms(lease_id: int) -> ClaimTerms:
    return ClaimTerms(lease_id=lease_id, worker="w", queues=None, tasks=["send"], limit=10, lease=30.0)


def test_who_has_heard_claims_on_the_connection_that_heard(postgres_ready_url: str) -> None:
    """Its server process is awake already: no other has to be woken."""
    with closing(open_store(postgres_ready_url)) as store:
        store.ready()
        version = store.wake.version()
        listener = run_sql(postgres_ready_url, LISTENERS)
        claim = store.claim_ahead(**terms(7))
        enqueue(store, task="send")
        assert store.wake.wait(version, PATIENCE)
        assert len(claim()) == 1
        assert run_sql(postgres_ready_url, CLAIMERS) == listener


def test_what_is_heard_while_a_claim_is_made_ready_ends_the_wait(postgres_ready_url: str) -> None:
    """W1: whatever is read on that connection may bring the notification along."""
    with closing(open_store(postgres_ready_url)) as store:
        store.ready()
        version = store.wake.version()
        enqueue(store, task="send")
        claim = store.claim_ahead(**terms(7))
        assert store.wake.wait(version, PATIENCE)
        assert len(claim()) == 1


def test_what_was_heard_with_the_claim_is_old_news_to_the_next_wait(postgres_ready_url: str) -> None:
    """W1: else a worker that was woken twice would never come to rest."""
    with closing(open_store(postgres_ready_url)) as store:
        store.ready()
        version = store.wake.version()
        claim = store.claim_ahead(**terms(7))
        enqueue(store, task="send")
        assert store.wake.wait(version, PATIENCE)
        run_sql(postgres_ready_url, "NOTIFY detent")
        assert len(claim()) == 1
        assert not store.wake.wait(store.wake.version(), 0.2)


def test_a_claim_whose_listener_was_cut_off_is_sent_elsewhere(postgres_ready_url: str) -> None:
    """Nothing was sent on it, so nothing is unknown; and the next wait listens again."""
    with closing(open_store(postgres_ready_url)) as store:
        store.ready()
        version = store.wake.version()
        [(listener,)] = run_sql(postgres_ready_url, LISTENERS)
        claim = store.claim_ahead(**terms(7))
        enqueue(store, task="send")
        assert run_sql(postgres_ready_url, f"SELECT pg_terminate_backend({listener}, 10000)") == [(True,)]
        assert store.wake.wait(version, PATIENCE)
        assert len(claim()) == 1
        store.wake.version()
        assert store.wake.is_sure


def test_a_listener_that_is_lost_while_the_claim_is_made_ready_ends_the_wait(postgres_ready_url: str) -> None:
    """W1: nobody waits without ears for as long as one who has some."""
    with closing(open_store(postgres_ready_url)) as store:
        store.ready()
        version = store.wake.version()
        [(listener,)] = run_sql(postgres_ready_url, LISTENERS)
        assert run_sql(postgres_ready_url, f"SELECT pg_terminate_backend({listener}, 10000)") == [(True,)]
        claim = store.claim_ahead(**terms(7))
        enqueue(store, task="send")
        assert store.wake.wait(version, PATIENCE)
        assert len(claim()) == 1


def test_listening_that_fails_is_logged_once_and_so_is_its_return(
    postgres_ready_url: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """W3: it was swallowed: work was found once a second, and nothing said why."""
    with closing(PostgresStore(postgres_ready_url)) as store, caplog.at_level(logging.INFO, "detent.store"):
        store.ready()
        with monkeypatch.context() as patched:
            patched.setattr("detent.store.postgres.wake._CHANNEL", "no channel")
            for _ in range(3):
                store.wake.version()
            (said,) = caplog.records
            assert said.levelname == "WARNING"
            assert "syntax error" in said.getMessage()
            assert vars(said)["cause"] == "database"  # counted with the others: four lines came in one second
        for _ in range(3):
            store.wake.version()
        assert store.wake.is_sure
        assert [record.getMessage() for record in caplog.records[1:]] == ["notifications of new work arrive again"]


def test_a_listener_that_hears_late_is_sure_from_then_on(
    postgres_ready_url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """W3: on a busy machine the first notification came after the second that it may take, and the worker looked for
    work once a second for as long as the connection lived."""
    monkeypatch.setattr("detent.store.postgres.wake._PROBE_SECONDS_MAX", 0.0)
    with closing(PostgresStore(postgres_ready_url)) as store, caplog.at_level(logging.INFO, "detent.store"):
        store.ready()
        store._wake._notify = lambda: None
        version = store.wake.version()
        seen = [store.wake.is_sure]
        enqueue(store)
        assert store.wake.wait(version, PATIENCE)
        store.wake.version()
        seen.append(store.wake.is_sure)
        assert seen == [False, True]
        assert caplog.records[-1].getMessage() == "notifications of new work arrive again"
