"""A call that meets a lock of another connection ends after a bounded time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from detent.errors import DatabaseBusy, DetentError, OutcomeUnknown
from detent.model.records import Enqueued
from detent.store.contract import CATALOGUE, Store
from detent.store.enqueue_writer import EnqueueWriter
from detent.store.open import open_store
from detent.testing.stores import plain_connection
from tests.contract.jobs.sample_jobs import enqueue, new_job
from tests.store.postgres.connections import run_sql
from tests.store.writing import Watched

_LOCK_FREE = {"ids_reserve"}
"""Takes numbers from a sequence, and waits for nothing."""
_BOUNDED = """
SELECT p.proname FROM pg_proc p WHERE p.pronamespace = 'detent'::regnamespace AND p.proname = ANY (%s)
   AND NOT EXISTS (SELECT 1 FROM unnest(p.proconfig) c WHERE c LIKE 'lock_timeout=%%')
"""


@pytest.fixture
def store(postgres_store_url: str) -> Iterator[Store]:
    with closing(open_store(postgres_store_url)) as store:
        yield store


@pytest.fixture
def stuck(postgres_store_url: str) -> Iterator[Any]:
    """Another connection, whose transaction stays open."""
    with closing(plain_connection(postgres_store_url)) as connection:
        yield connection


def soon(url: str, *functions: str) -> None:
    """Let functions give up sooner, so that the test does not take as long as they do."""
    for name in functions:
        run_sql(url, f"ALTER FUNCTION detent.{name} SET lock_timeout = '100ms'")


def test_every_verb_of_a_client_gives_up_a_lock(store: Store, postgres_store_url: str) -> None:
    """R4: workers have deadlines for their calls; clients and operators waited for as long as a lock was held."""
    with closing(plain_connection(postgres_store_url)) as connection:
        rows = connection.execute("SELECT proname FROM pg_proc WHERE pronamespace = 'detent'::regnamespace")
        verbs = {verb.name for verb in CATALOGUE.values() if verb.role in ("client", "admin")} - _LOCK_FREE
        functions = [name for (name,) in rows.fetchall() if name.rpartition("_v")[0] in verbs]
        assert len(functions) >= len(verbs) - 3  # some verbs are made of functions with other names
        assert connection.execute(_BOUNDED, (functions,)).fetchall() == []


def test_a_cancel_behind_a_lock_is_refused_as_busy(store: Store, stuck: Any, postgres_store_url: str) -> None:
    """R4: nothing is written, and the same again may succeed."""
    soon(postgres_store_url, "job_cancel_v1")
    job_id = enqueue(store)
    stuck.execute("SELECT 1 FROM detent.job WHERE id = %s FOR UPDATE", (job_id,))
    with pytest.raises(DatabaseBusy):
        store.job_cancel([job_id], "ana")
    stuck.rollback()
    (answer,) = store.job_cancel([job_id], "ana")
    assert not isinstance(answer, DetentError)


def test_a_write_whose_answer_was_lost_is_looked_up_for_a_bounded_time(
    store: Store, stuck: Any, postgres_store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C6: every look waits for a lock. Without the bound there are eight of them, each with its wait."""
    monkeypatch.setattr("detent.store.group_writer._RETRY_SECONDS_MAX", 0.2)
    soon(postgres_store_url, "job_enqueue_v1", "job_enqueue_one_v1")
    watched, job = Watched(store), new_job(store)
    watched.answers_to_lose = 1
    with closing(EnqueueWriter(watched)) as writer:  # type: ignore[arg-type]

        def lock() -> None:
            if watched.transactions == 2:
                stuck.execute("LOCK TABLE detent.job IN ACCESS EXCLUSIVE MODE")

        watched.before = lock
        with pytest.raises(OutcomeUnknown) as unknown:
            writer.write([job])
        assert isinstance(unknown.value.__cause__, DatabaseBusy)
        assert watched.transactions <= 3
        stuck.rollback()
        (answer,) = writer.write([job])
        assert answer == Enqueued(job.id, False)
