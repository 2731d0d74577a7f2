"""What the figures have reached: read from the record of a database, and from errors."""

from __future__ import annotations

from contextlib import closing

import pytest

from detent.errors import InvalidInput, LeaseLost, NotFound, SchemaMissing, WaitTimeout
from detent.lifecycle.library import LIBRARY
from detent.model.ops_records import CLAIM_SECONDS, SIGN_SECONDS
from detent.store.contract import Store
from detent.testing.stores import StoreClock, plain_connection
from prove.coverage import error_points, errors_counted, fault_points, transition_point, transitions_of
from tests.contract.jobs.sample_jobs import LEASE, abort, claim_one, enqueue, succeeded
from tests.contract.ops.sample_ops_runs import claim_run, queue_run, run_in
from tests.contract.pipelines.sample_pipeline_runs import completed, failed_run

DECLARED = {transition_point(lifecycle, move) for lifecycle in LIBRARY.values() for move in lifecycle.transitions}


def test_transitions_are_read_from_the_record(store: Store, store_url: str, clock: StoreClock) -> None:
    """Moves of attempts, of the log and folds, each by its trigger and each declared."""
    succeeded(store)
    store.job_cancel([enqueue(store)], "ana")
    enqueue(store)
    abort(store, claim_one(store))
    clock.advance(60)
    store.job_promote(10)
    claim_one(store)
    clock.advance(LEASE + 1)
    store.lease_reap(10)
    found = transitions_of(store_url)
    assert found == {
        "transition job: pending -> running (claim)": 3,
        "transition job: running -> succeeded (finish)": 1,
        "transition job: running -> failed (fail)": 1,
        "transition job: failed -> pending (back_off)": 1,
        "transition job: running -> pending (give_back)": 1,
        "transition job: pending -> cancelled (cancel)": 1,
        "transition execution: leased -> in_progress (start)": 1,
        "transition execution: in_progress -> committed (commit)": 1,
        "transition execution: committed -> done (finish)": 1,
        "transition execution: leased -> aborted (abort)": 2,
    }
    assert found.keys() <= DECLARED
    with closing(plain_connection(store_url)) as connection:
        assert transitions_of(connection) == found


def moves(entity: str, url: str) -> dict[str, int]:
    """The moves of one lifecycle on record, and how often each was made."""
    start = f"transition {entity}: "
    return {point.removeprefix(start): count for point, count in transitions_of(url).items() if point.startswith(start)}


def test_moves_of_partitions_follow_from_their_rows(store: Store, store_url: str) -> None:
    completed(store, {"x": "1"}, watermark="other")
    run_id, _ = failed_run(store)
    ended = {
        "pending -> in_progress (begin)": 3,
        "in_progress -> fetching_pages (store_page)": 3,
        "fetching_pages -> completed (complete)": 2,
    }
    assert moves("partition", store_url) == ended | {"fetching_pages -> failed (fail)": 1}
    store.pipeline_retry(run_id, "ana")
    assert moves("partition", store_url) == ended | {"failed -> fetching_pages (retry)": 1}
    assert transitions_of(store_url).keys() <= DECLARED


def test_moves_of_ops_runs_follow_from_their_jobs(store: Store, store_url: str, clock: StoreClock) -> None:
    for state in ("success", "failed", "cancelled", "running"):
        run_in(store, state)
    store.ops_cancel(queue_run(store), "ana")
    clock.advance(SIGN_SECONDS + 1)
    store.lease_reap(10)
    queue_run(store)
    claim_run(store)
    clock.advance(CLAIM_SECONDS + 1)
    store.lease_reap(10)
    assert moves("ops_run", store_url) == {
        "queued -> claimed (claim)": 5,
        "claimed -> running (begin)": 4,
        "running -> success (succeed)": 1,
        "running -> failed (fail)": 1,
        "running -> cancelled (cancel)": 1,
        "running -> failed (stall)": 1,
        "queued -> cancelled (cancel)": 1,
        "claimed -> cancelled (go_stale)": 1,
    }


def test_errors_count_with_their_causes() -> None:
    """Among answers, in lists, and as the reason of another."""
    lost = LeaseLost(1, 2, "gone")
    assert error_points("fine", [None, lost], lost) == {"error LeaseLost": 2}
    deadlock = OSError()
    deadlock.sqlstate = "40P01"  # type: ignore[attr-defined]
    with pytest.raises(SchemaMissing) as raised:
        raise SchemaMissing("here", "none") from deadlock
    assert error_points(raised.value) == {"error SchemaMissing": 1, "sqlstate 40P01": 1}


def test_every_error_that_is_made_meanwhile_counts() -> None:
    """The errors stay as they are, and counting ends with the block."""
    with errors_counted() as points:
        lost = LeaseLost(job_id=1, attempt=2, found="gone")
        late = WaitTimeout(1, "decision")
        with pytest.raises(InvalidInput, match="a: found b; allowed: c"):
            raise InvalidInput("a", "b", "c")
    NotFound("job", "1")
    assert (lost.job_id, lost.attempt, lost.found) == (1, 2, "gone")
    assert isinstance(late, TimeoutError)
    assert points == {"error LeaseLost": 1, "error WaitTimeout": 1, "error InvalidInput": 1}


def test_faults_have_points_too() -> None:
    assert fault_points("lost answer", "crash") == {"fault lost answer": 1, "fault crash": 1}
