"""ops_claim: the next run for whoever asks."""

from __future__ import annotations

from detent.store.contract import Store
from detent.testing.stores import StoreClock
from tests.contract.jobs.sample_jobs import claim, enqueue, job, state
from tests.contract.ops.sample_ops_runs import claim_run, ops_run, queue_run, run_in


def test_the_run_that_was_queued_first_comes_first(store: Store, clock: StoreClock) -> None:
    """O1, J4: and each to one worker only."""
    jobs = []
    for _ in range(3):
        jobs.append(queue_run(store))
        clock.advance(1)
    assert [claim_run(store).job_id for _ in jobs] == jobs
    assert store.ops_claim(store.ids_reserve(1), "ana") is None


def test_a_claimed_run_is_its_workers(store: Store, clock: StoreClock) -> None:
    """O1: claimed by whom and when, with a line among its events that does not make it running."""
    job_id = queue_run(store, metadata='{"by":"ana"}')
    clock.advance(15)
    held = claim_run(store, worker="worker-001")
    assert (held.project_id, held.env, held.git_sha, held.git_ref) == ("shop", "staging", "abc", "main")
    assert (held.metadata, held.token.attempt) == ('{"by":"ana"}', 1)
    row = ops_run(store, job_id)
    assert (row.state, row.claimed_by, row.started_at, row.begun_at) == ("claimed", "worker-001", clock.now(), None)
    assert row.env_id == held.env_id
    (line,) = store.job_events(job_id)
    assert (line.level, line.message, line.payload) == ("info", "Run claimed by worker", '{"worker_id":"worker-001"}')


def test_it_takes_ops_runs_alone_and_no_worker_of_tasks_takes_them(store: Store) -> None:
    """O1: over the same jobs, but nobody's by mistake."""
    plain, run = enqueue(store), queue_run(store)
    assert claim_run(store).job_id == run
    assert [held.job_id for held in claim(store)] == [plain]


def test_a_paused_queue_gives_no_runs(store: Store) -> None:
    """J12"""
    queue_run(store)
    store.queue_pause("ops", "ana", "freeze")
    assert store.ops_claim(store.ids_reserve(1), "ana") is None
    store.queue_resume("ops", "ana")
    claim_run(store)


def test_whoever_asks_ends_stale_runs_and_touches_nothing_else(store: Store, clock: StoreClock) -> None:
    """O4, R1: where shell scripts are the only workers, nobody else would; leases of other jobs are left to others."""
    stale = run_in(store, "claimed")
    enqueue(store)
    (plain,) = claim(store)
    clock.advance(300)
    assert store.ops_claim(store.ids_reserve(1), "bob") is None
    assert ops_run(store, stale.job_id).state == "cancelled"
    assert state(store, plain.job_id) == "running"
    assert job(store, plain.job_id).ended == 0
    assert store.lease_reap(100).aborted == (plain.job_id,)
