"""Connections that go silent without being closed: a caller with a deadline gives them up and takes another."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest

from detent.errors import DatabaseBusy, DatabaseError, DatabaseUnreachable, OutcomeUnknown
from detent.model.clock import SystemClock
from detent.store.contract import Store
from detent.store.open import open_store
from detent.testing.lossy_proxy import Loss, Proxy, Request

LONG = 600.0
"""Seconds for which a connection stays silent: a call that waits for it does not return within this test."""


class Silences:
    """Silences every connection on which a chosen verb is asked for, as often as `left` says."""

    def __init__(self, verb: str) -> None:
        self._verb = verb
        self.left = 0

    def __call__(self, request: Request) -> Loss | None:
        if self.left and request.verb == self._verb:
            self.left -= 1
            return "silence"
        return None


@contextmanager
def silenced(url: str, verb: str) -> Iterator[tuple[Store, Silences]]:
    chance = Silences(verb)
    with (
        Proxy(url, chance, silent_seconds=LONG) as proxy,
        closing(open_store(proxy.url, clock=SystemClock())) as store,
    ):
        yield store, chance


@pytest.mark.timeout(60)
@pytest.mark.parametrize("verb", ["lease_renew", "now"])
def test_a_silent_connection_is_given_up_and_the_next_call_gets_a_fresh_one(postgres_store_url: str, verb: str) -> None:
    """W4: a read is unreachable, a write may have happened. Neither waits for the silent connection again."""
    with silenced(postgres_store_url, verb) as (store, chance):

        def ask() -> object:
            return store.lease_renew([1], 30.0) if verb == "lease_renew" else store.now()

        ask()
        chance.left = 1
        with store.answering_within(0.5), pytest.raises(DatabaseError) as refused:
            ask()
        assert isinstance(refused.value, OutcomeUnknown if verb == "lease_renew" else DatabaseUnreachable)
        assert "did not answer in time" in str(refused.value)
        with store.answering_within(30.0):
            ask()


@pytest.mark.timeout(60)
def test_connections_at_rest_are_dropped_with_a_silent_one(postgres_store_url: str) -> None:
    """They probably lead the same way: a caller must not lose its deadline to each of them in turn."""
    with silenced(postgres_store_url, "now") as (store, chance):
        gate = threading.Barrier(4)

        def use() -> None:
            def look(verbs: object) -> None:
                store.now()
                gate.wait(30)

            store.together(look)

        threads = [threading.Thread(target=use) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        pool = store._pool  # type: ignore[attr-defined]
        assert len(pool._idle) > 1
        chance.left = 1
        with store.answering_within(0.5), pytest.raises(DatabaseUnreachable):
            store.now()
        assert not pool._idle


@pytest.mark.timeout(60)
def test_a_transaction_has_the_deadline_too(postgres_store_url: str) -> None:
    """Its BEGIN and COMMIT do not go the short way: psycopg waits for them."""
    with silenced(postgres_store_url, "COMMIT") as (store, chance):
        store.now()
        chance.left = 1
        with store.answering_within(0.5), pytest.raises(OutcomeUnknown):
            store.together(lambda verbs: verbs.lease_renew([1], 30.0))


@pytest.mark.timeout(60)
def test_a_wait_for_a_connection_ends_with_the_deadline(postgres_store_url: str) -> None:
    """All connections of the process are in use: that takes as long as the caller has, not half a minute."""
    with closing(open_store(postgres_store_url, clock=SystemClock())) as store:
        pool = store._pool  # type: ignore[attr-defined]
        held = [pool.connection() for _ in range(8)]
        with store.answering_within(0.2), pytest.raises(DatabaseBusy):
            store.now()
        for slot in held:
            pool.give_back(slot)
        assert store.now()


def test_an_inner_deadline_cannot_be_longer_than_the_outer_one(postgres_store_url: str) -> None:
    with (
        silenced(postgres_store_url, "now") as (store, chance),
        store.answering_within(0.5),
        store.answering_within(LONG),
    ):
        chance.left = 1
        with pytest.raises(DatabaseUnreachable):
            store.now()
