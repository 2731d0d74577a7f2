"""Plants rows that no verb writes, as the owner of the database, and removes them again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager

from tests.store.invariants.owner import Owner

__all__ = ["ended_twice", "offered_again", "queued_twice"]


@contextmanager
def ended_twice(url: str, job_id: int) -> Iterator[None]:
    """The record says that the current attempt has ended, though the job is running: it cannot be ended again."""
    with closing(Owner(url)) as owner:
        owner.plant(
            "INSERT INTO {execution} (job_id, attempt, worker, leased_at, aborted_at, outcome, next_state, counted) "
            f"SELECT id, attempt, 'eve', leased_at, leased_at, 'error', 'failed', TRUE FROM {{job}} WHERE id = {job_id}"
        )
        yield
        owner.plant(f"DELETE FROM {{execution}} WHERE job_id = {job_id} AND worker = 'eve'")


@contextmanager
def offered_again(url: str, job_id: int) -> Iterator[None]:
    """A job that is not pending has a row in the queue, which has expired."""
    with closing(Owner(url)) as owner:
        owner.run(
            "INSERT INTO {ready} (lane_id, ready_at, job_id, expires_at) "
            f"SELECT (SELECT min(id) FROM {{lane}}), due_at, id, due_at FROM {{job}} WHERE id = {job_id}"
        )
        yield
        owner.run(f"DELETE FROM {{ready}} WHERE job_id = {job_id}")


@contextmanager
def queued_twice(url: str, job_id: int) -> Iterator[None]:
    """A waiting job has the very row in `ready` that it is to get when it comes due."""
    with closing(Owner(url)) as owner:
        owner.run(
            "INSERT INTO {ready} (lane_id, ready_at, job_id) "
            f"SELECT lane_id, due_at, job_id FROM {{waiting}} WHERE job_id = {job_id}"
        )
        yield
        owner.run(f"DELETE FROM {{ready}} WHERE job_id = {job_id}")
