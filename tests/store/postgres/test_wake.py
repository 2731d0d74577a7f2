"""The connection that listens."""

from __future__ import annotations

import threading
from contextlib import closing

from detent.store.open import open_store
from tests.contract.kit import enqueue
from tests.store.postgres.kit import run_sql

PATIENCE = 60.0
"""Seconds after which a wait that nobody ends is a failure."""

END_LISTENERS = """
SELECT count(pg_terminate_backend(pid, 10000)) FROM pg_stat_activity
 WHERE datname = current_database() AND query LIKE 'LISTEN%'
"""


def test_a_listener_that_was_cut_off_listens_again_before_the_next_wait(postgres_url: str) -> None:
    """W1: whoever was woken by the loss itself finds it out when it waits again."""
    with closing(open_store(postgres_url)) as store:
        store.ready()
        version = store.wake.version()
        assert store.wake.is_sure
        assert run_sql(postgres_url, END_LISTENERS) == [(1,)]
        assert store.wake.wait(version, PATIENCE)
        version = store.wake.version()
        assert store.wake.is_sure
        actor = threading.Thread(target=enqueue, args=(store,))
        actor.start()
        assert store.wake.wait(version, PATIENCE)
        actor.join()
