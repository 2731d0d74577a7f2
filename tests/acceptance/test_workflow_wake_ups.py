"""Wake-ups of workflows: at the moment of parking, without notifications, in a burst, and by a retry of thousands.

`make test` takes a slice of each; `make faults` 10,000 signals, 15,000 failed and 100,000 sleeping workflows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import timedelta
from threading import Barrier
from typing import Any

import pytest

from detent import Limit
from detent.declare.workflow import Step
from detent.declare.workflow_context import WorkflowContext
from detent.model.clock import TurnableClock
from detent.model.records import Abort, Claimed, Finish
from detent.model.service_records import Agenda, WorkerSeen
from detent.model.workflow_records import Arrived, NewStep, Park, Parked
from detent.store.contract import Store
from detent.testing.harness import Harness
from detent.testing.stores import START, StoreClock, another_store, is_sqlite, plain_connection, row_violations, table
from detent.worker.options import WorkerOptions
from detent.worker.services.service_set import ServiceSet
from tests.contract.jobs.sample_jobs import claim, new_job
from tests.contract.workflows.sample_workflows import begin, is_sent, look, park, parked_for_signal, send, signal
from tests.deadlines import scaled

PORTION = 500


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(2) as threads:
        yield threads


# -- a signal in the moment of parking -------------------------------------------------------------------------


@pytest.mark.timeout(1800)
def test_a_signal_in_the_moment_of_parking_is_taken_once(
    store: Store, clock: StoreClock, store_url: str, threads: ThreadPoolExecutor, whole: bool
) -> None:
    """F5: two connections start at a barrier, one parks and one sends. Whichever comes first, the workflow is awake
    after it, and takes the signal in its next attempt."""
    with closing(another_store(store_url, clock)) as sender:
        sender.ready()
        for number in range(10_000 if whole else 60):
            held = begin(store)
            start = Barrier(2)

            def both(work: Any, start: Barrier = start) -> Any:
                start.wait(scaled(60))
                return work()

            parking = threads.submit(both, lambda held=held: park(store, held, signal()))
            sending = threads.submit(both, lambda held=held: send(sender, held.job_id))
            assert parking.result(scaled(60)) == Parked(held.job_id, 1)
            is_sent(sending.result(scaled(60)))
            store.workflow_wake(10)
            again = claim(store, limit=10)
            assert [one.job_id for one in again] == [held.job_id], f"lost in round {number}"
            assert isinstance(look(store, again[0], signal()), Arrived)
            assert not isinstance(look(store, again[0], signal(), path="w#2"), Arrived), f"twice in round {number}"
            store.job_finish([Finish(held.job_id, 2)], "ana")
    assert row_violations(store, store_url) == []


# -- without notifications -------------------------------------------------------------------------------------

_NO_NOTIFY = """
CREATE OR REPLACE FUNCTION detent.wake_waiters(p_always boolean) RETURNS void LANGUAGE plpgsql AS $$ BEGIN END $$
"""
_NOTIFY = "SELECT pg_get_functiondef('detent.wake_waiters(boolean)'::regprocedure)"


@pytest.fixture
def silent(store: Store, store_url: str) -> Iterator[None]:
    """A database that notifies nobody."""
    if is_sqlite(store_url):
        yield
        return
    with closing(plain_connection(store_url)) as connection:
        (plain,) = connection.execute(_NOTIFY).fetchone()
        connection.execute(_NO_NOTIFY)
        connection.commit()
        yield
        connection.execute(plain)
        connection.commit()


def test_one_heartbeat_wakes_what_could_not_be_woken_at_once(
    store: Store, store_url: str, silent: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F5: the row of the job is locked while the signal is sent, and no notification arrives. The next heartbeat of a
    worker learns of the wake request, and carries it out in the same pass. On SQLite the sender wakes the workflow."""
    job_id = parked_for_signal(store)
    beats: list[WorkerSeen] = []
    seen = store.worker_seen

    def counted(worker: WorkerSeen) -> Agenda:
        beats.append(worker)
        return seen(worker)

    monkeypatch.setattr(store, "worker_seen", counted)
    options = WorkerOptions(app="shop:app", name="ana", lease=30.0)
    services = ServiceSet(store, options, store.ids_reserve(1), TurnableClock(START))
    services.tick(0.0, asked_to_drain=False)
    with closing(plain_connection(store_url)) as other:
        if not is_sqlite(store_url):
            other.execute(f"SELECT 1 FROM {table(store_url, 'job')} WHERE id = {job_id} FOR UPDATE")
        is_sent(send(store, job_id))
        assert [one.job_id for one in claim(store)] == ([job_id] if is_sqlite(store_url) else [])
        other.rollback()
    if is_sqlite(store_url):
        return
    del beats[:]
    now = 0.0
    while not beats:
        now = services.next_quick(now)
        services.tick(now, asked_to_drain=False)
    assert [one.job_id for one in claim(store)] == [job_id]
    assert len(beats) == 1


# -- a burst ---------------------------------------------------------------------------------------------------


def parked_until(store: Store, clock: StoreClock, count: int, tenant: str, seconds: float) -> None:
    """Park that many workflows of a tenant, all until the same second."""
    until = clock.now() + timedelta(seconds=seconds)
    for start in range(0, count, PORTION):
        many = min(PORTION, count - start)
        first = store.ids_reserve(many)
        store.job_enqueue([new_job(store, id=first + n, tenant=tenant) for n in range(many)])
        held = claim(store, limit=many)
        assert len(held) == many
        parks = [
            Park(job_id=one.job_id, attempt=1, version=1, generation=1, until=until + timedelta(microseconds=n))
            for n, one in enumerate(held)
        ]
        assert all(isinstance(one, Parked) for one in store.workflow_park(parks, "ana"))


@pytest.mark.timeout(1800)
def test_a_burst_of_wake_ups_leaves_other_tenants_their_turn(
    store: Store, clock: StoreClock, store_url: str, whole: bool
) -> None:
    """F23: thousands of workflows of one tenant are due in the same second. Workers that claim ten at a time get
    something with every claim, and jobs of other tenants come with the first claims after they were enqueued."""
    count, tenants = 100_000 if whole else 2_000, 5
    parked_until(store, clock, count, "large", 3600)
    clock.advance(3601)
    services = ServiceSet(
        store, WorkerOptions(app="shop:app", name="ana", lease=30.0), store.ids_reserve(1), TurnableClock(START)
    )
    services.tick(0.0, asked_to_drain=False)  # due workflows are promoted by the service of a worker
    woken, claims, now = 0, 0, 0.0
    small: list[int] = []
    came: dict[int, int] = {}
    while woken < count or len(came) < len(small):
        if claims == 3:
            small = [store.ids_reserve(1) for _ in range(tenants)]
            store.job_enqueue([new_job(store, id=one, tenant=f"small {n}") for n, one in enumerate(small)])
        claimed = claim(store, limit=10 if claims < 20 else PORTION)
        if not claimed:
            now = services.next_quick(now)
            services.tick(now, asked_to_drain=False)
            continue
        came |= {one.job_id: claims for one in claimed if one.tenant != "large"}
        woken += sum(one.tenant == "large" for one in claimed)
        store.job_finish([Finish(one.job_id, one.attempt) for one in claimed], "ana")
        claims += 1
    assert woken == count
    assert set(came) == set(small)
    assert max(came.values()) <= 4, "one claim of ten has room for five small tenants and the large one"
    assert row_violations(store, store_url) == []


# -- a retry of thousands --------------------------------------------------------------------------------------


def failed_at_last_step(harness: Harness, count: int) -> None:
    """Workflows of eight steps: seven are on record, and the last one has failed for good."""
    call = harness.app.find_task("order").call(k=0)
    for start in range(0, count, PORTION):
        many = min(PORTION, count - start)
        harness.app.enqueue_many([call] * many)
        held = _claim(harness, many)
        steps = [
            NewStep(
                job_id=one.job_id,
                attempt=1,
                version=1,
                generation=1,
                path=f"act:{n}",
                seq=n + 1,
                kind="call",
                value=str(n),
            )
            for one in held
            for n in range(7)
        ]
        harness.store.step_record(steps)
        aborts = [Abort(job_id=one.job_id, attempt=1, outcome="error", error="a bug", fatal=True) for one in held]
        harness.store.job_abort(aborts, "ana")


def _claim(harness: Harness, limit: int) -> list[Claimed]:
    store = harness.store
    return store.job_claim(
        lease_id=store.ids_reserve(1),
        worker="ana",
        queues=None,
        tasks=["order"],
        limit=limit,
        lease=30.0,
        versions={"order": (1,)},
    )


@pytest.mark.timeout(3600)
def test_thousands_are_repaired_through_the_limit_of_their_queue(detent: Harness, whole: bool) -> None:
    """F16: a filter selects them; seven of eight steps are not repeated, and no more of them run at once than the queue
    allows."""
    count, at_once = 15_000 if whole else 300, 10
    called: Counter[int] = Counter()

    def act(n: int) -> int:
        called[n] += 1
        return n

    @detent.app.workflow(name="order", queue="orders", undo="on_request")
    def order(ctx: WorkflowContext, k: int) -> int:
        return sum(ctx.step(Step("act", key=n), act, n) for n in range(8))

    failed_at_last_step(detent, count)
    detent.app.queues.limit("orders", Limit(concurrency=at_once), actor="ann")
    chosen = detent.app.jobs.where(task="order", state="quarantined")
    assert chosen.count() == count
    chosen.retry(actor="ann", reason="the bug is fixed").wait()
    done, most = 0, 0
    while done < count:
        held = _claim(detent, 50)
        most = max(most, len(held))
        assert held, f"{count - done} are left"
        assert _claim(detent, 50) == []
        for one in held:
            detent.attempt(one)
        done += len(held)
    assert most == at_once
    assert called == Counter({7: count})
    assert detent.app.jobs.where(task="order", state="succeeded").count() == count
    assert row_violations(detent.store, detent.url) == []
