"""One damaged row harms itself only: every service goes on with all others and tells a person once."""

from __future__ import annotations

import logging
from contextlib import closing
from datetime import timedelta

import pytest

from detent.model.alert_records import AlertRow
from detent.model.clock import TurnableClock
from detent.store.contract import Store
from detent.testing.stores import START, StoreClock
from detent.worker.options import WorkerOptions
from detent.worker.services.due_jobs import build_expire_service, build_promote_service
from detent.worker.services.operations import build_operation_service
from detent.worker.services.reaper import Reaper
from detent.worker.services.retention import Keep, Retention
from detent.worker.services.service_set import ServiceSet
from tests.contract.damaged_rows import ended_twice, offered_again, queued_twice
from tests.contract.jobs.sample_jobs import claim, enqueue, state, succeeded
from tests.contract.operations.sample_operations import operation
from tests.store.invariants.owner import Owner

LEASE = 0.5


@pytest.fixture(autouse=True)
def server_older_than_a_lease(store: Store) -> None:
    """So that its start is no outage."""
    while (up_for := store.up_for()) is not None and up_for < LEASE:
        pass


def damaged(store: Store) -> list[AlertRow]:
    return [row for row in store.alert_list("firing", 100) if row.policy == "row_damaged"]


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]


def test_the_reaper_takes_everything_else(
    store: Store, store_url: str, clock: StoreClock, caplog: pytest.LogCaptureFixture
) -> None:
    """J6, R3: told once, however often it runs; taken like any other once it is repaired, and the alert is resolved."""
    ids = [enqueue(store) for _ in range(5)]
    for _ in range(5):
        claim(store, limit=1, lease=LEASE)
    clock.advance(60)
    reaper = Reaper(store, LEASE, batch=2)
    with ended_twice(store_url, ids[0]):
        for now in (1.0, 2.0, 70.0):
            reaper.run(now)
        assert [state(store, one) for one in ids] == ["running", *["pending"] * 4]
        (line,) = told(caplog)
        assert f"job {ids[0]}" in line
        (alert,) = damaged(store)
        assert (alert.scope, alert.severity) == ("service:reap", "critical")
        assert f"job {ids[0]}" in alert.message
    reaper.run(200.0)
    assert state(store, ids[0]) == "pending"
    reaper.run(201.0)
    assert damaged(store) == []


def test_every_other_job_expires(
    store: Store, store_url: str, clock: StoreClock, caplog: pytest.LogCaptureFixture
) -> None:
    """J12, R3"""
    done = succeeded(store)
    ids = [enqueue(store, expires_at=clock.now() + timedelta(seconds=5)) for _ in range(3)]
    clock.advance(10)
    service = build_expire_service(store)
    with offered_again(store_url, done):
        service.run(1.0)
        service.run(2.0)
        assert [state(store, one) for one in ids] == ["cancelled"] * 3
        assert len(told(caplog)) == 1
        assert [alert.scope for alert in damaged(store)] == ["service:expire"]
    assert state(store, done) == "succeeded"


def test_every_other_job_comes_due(
    store: Store, store_url: str, clock: StoreClock, caplog: pytest.LogCaptureFixture
) -> None:
    """J11, R3"""
    ids = [enqueue(store, due_at=clock.now() + timedelta(seconds=5)) for _ in range(3)]
    clock.advance(10)
    service = build_promote_service(store)
    with queued_twice(store_url, ids[0]):
        service.run(1.0)
        service.run(2.0)
        assert {held.job_id for held in claim(store)} >= set(ids[1:])
        assert len(told(caplog)) == 1
        assert [alert.scope for alert in damaged(store)] == ["service:promote"]


def test_an_operation_comes_to_its_end(
    store: Store, store_url: str, clock: StoreClock, caplog: pytest.LogCaptureFixture
) -> None:
    """J14, R3: a job that does not stand where its row says cannot be cancelled; it counts as refused."""
    ids = [enqueue(store) for _ in range(20)]
    with closing(Owner(store_url)) as owner:
        owner.run(f"DELETE FROM {{ready}} WHERE job_id = {ids[7]}")
    row = store.operation_start(operation(store, "cancel", job_state="pending"))
    service = build_operation_service(store)
    for now in range(1, 6):
        service.run(float(now))
    ended = store.operation_get(row.id)
    assert ended is not None
    assert (ended.state, ended.looked, ended.changed, ended.refused) == ("done", 20, 19, 1)
    assert [one for one in ids if state(store, one) == "pending"] == [ids[7]]
    assert len(told(caplog)) == 1
    assert [alert.scope for alert in damaged(store)] == ["service:operations"]


def test_retention_deletes_everything_else(
    store: Store, store_url: str, clock: StoreClock, caplog: pytest.LogCaptureFixture
) -> None:
    """J16, R3: a job whose deletion is refused stays; all before and after it go."""
    ids = [succeeded(store) for _ in range(9)]
    clock.advance(timedelta(days=8))
    refuse = f"OLD.id = {ids[4]}"
    with closing(Owner(store_url)) as owner:
        if owner.sqlite:
            owner.run(f"CREATE TRIGGER eve BEFORE DELETE ON {{job}} WHEN {refuse} BEGIN SELECT RAISE(ABORT, 'no'); END")
        else:
            owner.run(
                "CREATE FUNCTION eve() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no'; END $$",
                f"CREATE TRIGGER eve BEFORE DELETE ON {{job}} FOR EACH ROW WHEN ({refuse}) EXECUTE FUNCTION eve()",
            )
    retention = Retention(store, Keep(succeeded=7, others=7))
    for now in range(1, 12):
        retention.run(float(now))
    assert [row is not None for row in store.job_get(ids)] == [one == ids[4] for one in ids]
    assert len(told(caplog)) == 1
    assert [alert.scope for alert in damaged(store)] == ["service:retention"]


def test_a_time_that_no_clock_can_show_does_not_stop_the_services(store: Store, store_url: str) -> None:
    """W3, R3: the first lease to expire has a time before the year 1; workers are still told what there is to do."""
    enqueue(store)
    claim(store, lease=LEASE)
    with closing(Owner(store_url)) as owner:
        owner.run(f"UPDATE {{lease}} SET expires_at = {-(2**62) if owner.sqlite else chr(39) + '-infinity' + chr(39)}")
    here = ServiceSet(store, WorkerOptions(app="shop:app", name="ana", lease=LEASE), 7, TurnableClock(START))
    here.tick(1.0, asked_to_drain=False)
    assert here.failures == {}
    assert [row.id for row in store.worker_list(10)] == [7]
