"""An enqueue that is on its way before anybody waits for it."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import closing

import pytest

from detent.errors import IdConflict, InvalidInput, OutcomeUnknown
from detent.model.records import Enqueued
from detent.store.jobs.filters import JobSearch
from detent.store.open import open_store
from detent.store.postgres.store import PostgresStore
from tests.contract.jobs.sample_jobs import enqueue, new_job
from tests.processes.worker_processes import until
from tests.store.postgres.connections import run_sql


@pytest.fixture
def store(postgres_ready_url: str) -> Iterator[PostgresStore]:
    """With one connection at rest, which has sent a job before."""
    with closing(open_store(postgres_ready_url)) as store:
        assert isinstance(store, PostgresStore)
        store.ready()
        enqueue(store)
        enqueue(store)
        yield store


def sender_of(store: PostgresStore) -> int:
    """The server's process behind the connection that rests."""
    with store._pool.connection() as connection:
        return connection.info.backend_pid


def test_it_is_done_before_anybody_waits_for_the_answer(store: PostgresStore) -> None:
    job = new_job(store)
    answers = store.job_enqueue_sent([job])
    assert answers is not None
    until(lambda: store.job_get([job.id])[0], "the job")
    assert answers() == [Enqueued(job.id, True)]
    assert store.job_enqueue([job]) == [Enqueued(job.id, False)]


def test_one_that_has_to_be_judged_is(store: PostgresStore) -> None:
    """Refusals come in the same words as for any other."""
    job = new_job(store)
    assert store.job_enqueue([job]) == [Enqueued(job.id, True)]
    stranger = new_job(store, id=job.id, nonce=9)
    again, other = store.job_enqueue_sent([job]), store.job_enqueue_sent([stranger])
    assert again is not None
    assert again() == [Enqueued(job.id, False)]
    # Its connection was lent meanwhile, so the second one was not sent at all.
    assert other is None
    other = store.job_enqueue_sent([stranger])
    assert other is not None
    (refusal,) = other()
    assert isinstance(refusal, IdConflict)


def test_who_would_have_to_wait_sends_nothing(store: PostgresStore, postgres_ready_url: str) -> None:
    """For others who have all connections, for a statement to be prepared, for a look whether a connection lives."""
    assert store.job_enqueue_sent([new_job(store), new_job(store)]) is None
    assert store.job_enqueue_sent([new_job(store, key="k")]) is None
    assert store.job_enqueue_sent([new_job(store, metadata="{}")]) is None, "never prepared"
    with store._pool.connection():
        assert store.job_enqueue_sent([new_job(store)]) is None
    sender = sender_of(store)
    job = new_job(store)
    assert run_sql(postgres_ready_url, f"SELECT pg_terminate_backend({sender}, 10000)") == [(True,)]
    assert store.job_enqueue_sent([job]) is None
    assert len(store.job_list(JobSearch()).rows) == 2
    with closing(open_store(postgres_ready_url)) as fresh:
        assert fresh.job_enqueue_sent([new_job(store)]) is None, "it has no connection yet"


def test_a_server_that_does_not_listen_holds_nobody_up(store: PostgresStore, postgres_ready_url: str) -> None:
    """More than the way to it can take: the rest is pushed by whoever waits. A loop that is held up by one such server
    would serve nobody."""
    job = new_job(store, payload='"' + 50_000_000 * "x" + '"')
    sender = sender_of(store)
    os.kill(sender, signal.SIGSTOP)
    try:
        answers = store.job_enqueue_sent([job])
    finally:
        os.kill(sender, signal.SIGCONT)
    assert answers is not None
    assert answers() == [Enqueued(job.id, True)]


def test_a_connection_that_is_lost_on_the_way_leaves_the_outcome_unknown(
    store: PostgresStore, postgres_ready_url: str
) -> None:
    """C6: and the connection is nobody's any more."""
    job = new_job(store)
    sender = sender_of(store)
    os.kill(sender, signal.SIGSTOP)
    try:
        answers = store.job_enqueue_sent([job])
        assert run_sql(postgres_ready_url, f"SELECT pg_terminate_backend({sender})") == [(True,)]
    finally:
        os.kill(sender, signal.SIGCONT)
    assert answers is not None
    with pytest.raises(OutcomeUnknown):
        answers()
    enqueue(store)


def test_what_cannot_be_written_is_refused_as_ever(store: PostgresStore) -> None:
    """Text that PostgreSQL cannot hold is for the ordinary way to refuse; the connection is as good as before."""
    sender = sender_of(store)
    for payload in ('"\ud800"', '"\0"'):
        job = new_job(store, fingerprint="f", payload=payload)
        answers = store.job_enqueue_sent([job])
        with pytest.raises(InvalidInput):
            answers() if answers is not None else store.job_enqueue([job])
    assert sender_of(store) == sender
