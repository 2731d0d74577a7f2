"""worker_seen: a worker lives, and says what it knows and holds."""

from __future__ import annotations

from datetime import timedelta

import msgspec

from detent.model.alert_records import DeliveryOutcome, Route
from detent.model.clock import to_micros
from detent.model.service_records import Agenda, NewOperation, WorkerRow
from detent.store.contract import Store
from detent.testing.stores import StoreClock
from tests.contract.batches.sample_batch_runs import applied_run, run
from tests.contract.jobs.sample_jobs import claim, enqueue
from tests.contract.workers.sample_workers import worker
from tests.schedule.schedulers import weekly


def test_it_is_on_the_list_as_it_says(store: Store, clock: StoreClock) -> None:
    """W3: name, place, what it serves, what it holds, since when."""
    began = clock.now()
    store.worker_seen(worker(running=3))
    clock.advance(1)
    now = worker(running=5, stopping=True, queues=None, versions={'mail."send': (1, 3)})
    store.worker_seen(now)
    said = msgspec.structs.asdict(now)
    assert store.worker_list(10) == [WorkerRow(**said, started_at=began, seen_at=clock.now())]


def test_workers_of_one_name_are_two(store: Store, clock: StoreClock) -> None:
    """W3: a name is for people; the id tells workers apart."""
    store.worker_seen(worker(8))
    store.worker_seen(worker(7))
    assert [row.id for row in store.worker_list(10)] == [7, 8]
    assert store.worker_list(10)[0].queues == ("mail", 'q"\\ü')


def test_who_was_not_seen_for_a_day_is_forgotten_when_a_new_one_comes(store: Store, clock: StoreClock) -> None:
    store.worker_seen(worker(7))
    clock.advance(86_401)
    store.worker_seen(worker(8))
    assert [row.id for row in store.worker_list(10**6)] == [8]


def test_it_hears_what_there_is_to_do_besides_jobs(store: Store, clock: StoreClock) -> None:
    """W3: the earliest of each kind, so that an idle worker asks for nothing else."""
    began = clock.now()
    assert store.worker_seen(worker()) == Agenda(now=began, schema_demanded=store.schema_known)
    enqueue(store, task="now")
    for late in (7, 5, 6):
        enqueue(store, due_at=began + timedelta(seconds=late), expires_at=began + timedelta(seconds=2 * late))
    enqueue(store, task="other", expires_at=began + timedelta(seconds=9))
    claim(store, tasks=["now"], lease=3)
    weekly(store, "minutely", "* * * * *", "UTC", "all")
    store.recovery_set("default", 1.0, None, "ana")
    store.operation_start(NewOperation(id=900, action="cancel", actor="ana"))
    clock.advance(1)
    assert store.worker_seen(worker()) == Agenda(
        now=began + timedelta(seconds=1),
        promote_at=began + timedelta(seconds=5),
        expire_at=began + timedelta(seconds=9),
        reap_at=began + timedelta(seconds=3),
        lease_checksum=to_micros(began + timedelta(seconds=3), field="reap_at"),
        schedule_at=store.schedule_list()[0].next_at,
        operations=True,
        recovery=True,
        schema_demanded=store.schema_known,
    )


def test_it_hears_that_jobs_come_and_go(store: Store, clock: StoreClock) -> None:
    """W3: when a lease is taken, is renewed or goes, whichever it is; not when nothing happened."""
    told = [store.worker_seen(worker()).lease_checksum]
    for lease in (30.0, 90.0, 60.0):
        enqueue(store)
        claim(store, lease=lease, lease_id=int(lease))
        told.append(store.worker_seen(worker()).lease_checksum)
    clock.advance(1)
    assert store.worker_seen(worker()).lease_checksum == told[-1]
    store.lease_renew([60], 60.0)
    told.append(store.worker_seen(worker()).lease_checksum)
    clock.advance(50)
    assert store.lease_reap(10).leases == 1
    told.append(store.worker_seen(worker()).lease_checksum)
    assert told[0] is None
    assert len(set(told)) == len(told)


def test_it_hears_when_the_world_is_to_be_looked_at(store: Store, clock: StoreClock) -> None:
    """W3, B6: the earliest of all runs."""
    made = [applied_run(store)]
    clock.advance(10)
    made.append(applied_run(store))
    assert store.worker_seen(worker()).reconcile_at == run(store, made[0].id).reconcile_at


def test_it_hears_of_alerts_until_they_are_told_and_over(store: Store) -> None:
    """W3, M2: so that nobody has to ask."""

    def heard() -> tuple[bool, bool]:
        agenda = store.worker_seen(worker())
        return agenda.firing, agenda.notices

    assert heard() == (False, False)
    store.alert_raise("low", "", "warning", "low")
    assert heard() == (True, True)
    store.alert_spread([Route("log", ("warning",))])
    assert heard() == (True, True)
    (delivery,), _ = store.alert_take("log", 10, 10, 60.0)
    store.alert_outcomes_put("log", [DeliveryOutcome(notice_n=delivery.notice.n, state="sent")])
    assert heard() == (True, False)
    store.alert_resolve("low", "", "well")
    store.alert_spread([])
    assert heard() == (False, False)
