"""Callers in threads and processes of their own that compete for keys and jobs; a worker that dies at its commit."""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from multiprocessing.synchronize import Barrier as ProcessBarrier
from threading import Barrier
from typing import NamedTuple

from detent.errors import DatabaseBusy, DetentError, KeyConflict
from detent.model.json_codec import fingerprint
from detent.model.records import Cancelled, Enqueued, NewJob
from detent.store.contract import Store
from detent.testing.stores import another_store, plain_connection

PATIENCE = 90.0
"""Seconds that rivals wait for each other at the start: only a broken race waits so long."""
TRIES_MAX = 6
"""A file that a stalled rival holds for ten seconds is busy, and nothing was written: whoever hears that asks again."""


class Bid(NamedTuple):
    """One caller's wish for a key."""

    job_id: int
    key: str
    payload: str
    rolls_back: bool


class Outcome(NamedTuple):
    """What one caller was told."""

    bid: Bid
    job_id: int
    created: bool
    conflict: bool


def race_for_keys(url: str, bids: list[Bid], gate: ProcessBarrier | None = None) -> list[Outcome]:
    """All bids at once, each by a thread with a store and connections of its own."""
    together = Barrier(len(bids))

    def call(bid: Bid) -> Outcome:
        with closing(another_store(url)) as store:
            assert store.job_get([bid.job_id]) == [None]
            if gate is not None and bid is bids[0]:
                gate.wait(PATIENCE)
            together.wait(PATIENCE)
            return _bid(url, store, bid)

    with ThreadPoolExecutor(len(bids)) as callers:
        return list(callers.map(call, bids))


def _bid(url: str, store: Store, bid: Bid) -> Outcome:
    item = NewJob(
        id=bid.job_id,
        task="mail.send",
        payload=bid.payload,
        nonce=bid.job_id,
        fingerprint=fingerprint("mail.send", bid.payload),
        key=bid.key,
    )
    if bid.rolls_back:
        with closing(plain_connection(url)) as connection:
            (answer,) = store.on(connection).job_enqueue([item])
            connection.rollback()
    else:
        (answer,) = _enqueued(store, item)
    if isinstance(answer, KeyConflict):
        return Outcome(bid, answer.job_id, False, True)
    assert isinstance(answer, Enqueued), answer
    return Outcome(bid, answer.job_id, answer.created, False)


def _enqueued(store: Store, item: NewJob) -> Sequence[Enqueued | DetentError]:
    for _ in range(TRIES_MAX - 1):
        with suppress(DatabaseBusy):
            return store.job_enqueue([item])
    return store.job_enqueue([item])


def claim_until_none_is_left(store: Store, seed: int, start: Barrier) -> list[int]:
    """Claim in portions of changing size; the ids in the order they came."""
    size = random.Random(seed)
    first_lease = store.ids_reserve(20_000)
    taken: list[int] = []
    start.wait(PATIENCE)
    for lease_id in range(first_lease, first_lease + 20_000):
        held = store.job_claim(
            lease_id=lease_id,
            worker=f"worker {seed}",
            queues=None,
            tasks=["mail.send"],
            limit=size.randint(1, 60),
            lease=3600.0,
        )
        if not held:
            return taken
        taken += [each.job_id for each in held]
    raise AssertionError("there is no end to the jobs")


def cancel_in_portions(store: Store, ids: list[int], start: Barrier) -> list[Cancelled | DetentError]:
    """Cancel jobs twenty at a time, in the order given."""
    answers: list[Cancelled | DetentError] = []
    start.wait(PATIENCE)
    for n in range(0, len(ids), 20):
        answers += store.job_cancel(ids[n : n + 20], "ana")
    return answers


def die_at_commit(url: str, job_id: int, attempt: int, *, before: bool) -> None:
    """A worker's process that is gone in the middle of its commit block, or the moment after, telling nobody."""
    store = another_store(url)
    with store.commit_block(job_id, attempt) as tx:
        tx.execute("INSERT INTO effect VALUES (:job)", {"job": job_id})
        if before:
            os._exit(9)
    os._exit(9)
