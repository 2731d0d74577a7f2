"""What workers do besides jobs: each service alone, some by one worker at a time, none while it would do harm."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import closing
from datetime import timedelta
from typing import Any, cast

import pytest

from detent.errors import DatabaseBusy
from detent.model.clock import TurnableClock
from detent.model.records import Claimed
from detent.model.service_records import NewOperation, TaskTimes
from detent.store.contract import Store
from detent.testing.stores import START, StoreClock, another_store, plain_connection, table
from detent.worker.options import WorkerOptions
from detent.worker.services import service_set
from detent.worker.services.invariants import Invariants
from detent.worker.services.reaper import Reaper
from detent.worker.services.recovery import Recovery, build_ops_recovery_service
from detent.worker.services.retention import Keep, Retention
from detent.worker.services.service import Service
from detent.worker.services.service_set import ServiceSet
from tests.app.shop import until
from tests.contract.jobs.sample_jobs import claim, claim_one, enqueue, job, state, succeeded
from tests.contract.ops.sample_ops_runs import claim_run, queue_run
from tests.contract.pipelines.sample_pipeline_runs import completed
from tests.contract.workflows.sample_workflows import parked_for_signal
from tests.schedule.schedulers import ticks, weekly

LEASE = 0.5


@pytest.fixture(autouse=True)
def server_older_than_a_lease(request: pytest.FixtureRequest) -> None:
    """So that its start is no outage: the first test may come upon it that soon."""
    if "store" in request.fixturenames:
        store: Store = request.getfixturevalue("store")
        while (up_for := store.up_for()) is not None and up_for < LEASE:
            pass


def services(store: Store, worker_id: int = 7) -> ServiceSet:
    """The services of one worker."""
    return ServiceSet(store, WorkerOptions(app="shop:app", name="ana", lease=LEASE), worker_id, TurnableClock(START))


def tick(these: ServiceSet, now: float) -> None:
    """Both kinds of services, whichever of them fails."""
    try:
        these.tick(now, asked_to_drain=False)
    finally:
        these.tick_alone(now)


def a_busy_minute(store: Store, clock: StoreClock) -> dict[str, int]:
    """Something to do for each service that looks after jobs."""
    jobs = {"reap": enqueue(store, task="reap")}
    claim(store, tasks=["reap"], lease=LEASE)
    jobs["promote"] = enqueue(store, task="promote", due_at=clock.now() + timedelta(seconds=5))
    jobs["expire"] = enqueue(store, task="expire", expires_at=clock.now() + timedelta(seconds=5))
    weekly(store, "minutely", "* * * * *", "UTC", "all")
    clock.advance(60)
    return jobs


def done(store: Store, jobs: dict[str, int]) -> set[str]:
    """The services that have done their part."""
    parts = {
        "heartbeat": [row.id for row in store.worker_list(10)] == [7],
        "promote": len(claim(store, tasks=["promote"])) == 1,
        "reap": state(store, jobs["reap"]) == "pending",
        "expire": state(store, jobs["expire"]) == "cancelled",
        "schedules": len(ticks(store, "minutely")) == 1,
    }
    return {name for name, is_done in parts.items() if is_done}


SEEN = {"heartbeat", "promote", "reap", "expire", "schedules"}


def test_one_pass_does_it_all(store: Store, clock: StoreClock) -> None:
    """J6, J11, J12, W3"""
    jobs = a_busy_minute(store, clock)
    tick(services(store), 0.0)
    assert done(store, jobs) == SEEN


@pytest.mark.parametrize("error", [RuntimeError("boom"), DatabaseBusy("db", "locked")], ids=["ours", "database"])
@pytest.mark.parametrize("broken", sorted(SEEN))
def test_one_that_fails_stops_no_other(store: Store, clock: StoreClock, broken: str, error: Exception) -> None:
    """L-24 of other systems: it is counted, and all others have done their part."""

    def fail(_now: float) -> None:
        raise error

    jobs = a_busy_minute(store, clock)
    all_of_them = services(store)
    all_of_them.services = [
        Service(one.name, one.every, fail, one.alone) if one.name == broken else one for one in all_of_them.services
    ]
    if isinstance(error, DatabaseBusy):
        with pytest.raises(DatabaseBusy):
            tick(all_of_them, 0.0)
    else:
        tick(all_of_them, 0.0)
    assert done(store, jobs) == SEEN - {broken}
    assert all_of_them.failures == {broken: 1}


def test_what_is_left_is_told_where_it_is_asked(store: Store, clock: StoreClock) -> None:
    """W1: a worker that drains learns that nothing is left."""
    here = services(store)
    here.heartbeat.set_state(tasks=("mail.send",), running=0, stopping=False)
    assert here.tick(0.0, asked_to_drain=True) == 0
    enqueue(store)
    assert here.tick(0.5, asked_to_drain=True) is None
    assert here.tick(1.0, asked_to_drain=True) == 1


def test_parked_workflows_are_looked_at_in_portions(
    store: Store, clock: StoreClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker that drains ends after a whole pass that has found nothing. What it has found before is looked at first,
    and what it has passed over may be left by now."""
    monkeypatch.setattr(service_set, "LEFT_PORTION", 2)
    here = services(store)
    here.heartbeat.set_state(tasks=("mail.send",), running=0, stopping=False)
    parked = [parked_for_signal(store) for _ in range(5)]
    later = enqueue(store, due_at=clock.now() + timedelta(hours=1))
    assert [here.tick(float(n), asked_to_drain=True) for n in range(4)] == [True] * 4
    store.job_cancel([later], "ana")
    # The pass goes on where the job was, and begins anew.
    assert [here.tick(float(n), asked_to_drain=True) for n in range(4, 7)] == [True, True, False]
    store.job_cancel(parked, "ana")
    assert here.tick(7.0, asked_to_drain=True) is False


def test_a_worker_is_on_the_list_while_it_lives(store: Store, clock: StoreClock) -> None:
    """W3: with what it knows and holds, as it was last told."""
    here = services(store)
    here.heartbeat.set_state(tasks=("a", "b"), running=3, stopping=True)
    here.tick(0.0, asked_to_drain=False)
    (row,) = store.worker_list(10)
    assert (row.name, row.tasks, row.running, row.stopping, row.slots) == ("ana", ("a", "b"), 3, True, 16)
    here.close()
    assert store.worker_list(10) == []


def test_a_service_passes_to_the_next_worker(store: Store, store_url: str, clock: StoreClock) -> None:
    """P-03 of other systems: by a lease with a term. One that ends lets go at once, one that dies when it runs out."""
    weekly(store, "minutely", "* * * * *", "UTC", "all")
    with closing(another_store(store_url, clock)) as elsewhere:
        first, second, third = services(store, 1), services(elsewhere, 2), services(elsewhere, 3)
        first.tick_alone(0.0)
        second.tick_alone(0.0)
        assert elsewhere.service_take("schedules", 2, 10) is None
        first.close()
        clock.advance(60)
        second.tick_alone(1.0)
        assert ticks(store, "minutely") == []
        second.tick_alone(5.0)
        assert len(ticks(store, "minutely")) == 1
        assert elsewhere.service_take("schedules", 3, 10) is None
        clock.advance(60)
        third.tick_alone(1.0)
        assert len(ticks(store, "minutely")) == 2


class TestReaper:
    """J6, DESIGN: not while the living cannot renew."""

    def lost(self, store: Store, clock: StoreClock) -> int:
        """A job whose holder is gone."""
        job_id = enqueue(store)
        claim_one(store, lease=LEASE)
        clock.advance(LEASE)
        return job_id

    def reaper(self, store: Store, batch: int = 500) -> Reaper:
        """One that is never held up, however slow this machine is."""
        return Reaper(store, LEASE, TurnableClock(START), batch)

    def test_a_fresh_worker_reaps_at_once(self, store: Store, clock: StoreClock) -> None:
        """J6"""
        job_id = self.lost(store, clock)
        self.reaper(store).run(0.0)
        assert state(store, job_id) == "pending"

    def test_after_an_outage_it_waits_for_one_lease(self, store: Store, clock: StoreClock) -> None:
        """J6: so that holders renew first."""
        job_id = self.lost(store, clock)
        reaper = self.reaper(store)
        reaper.saw_outage(10.0)
        reaper.run(10.0 + LEASE - 0.01)
        assert state(store, job_id) == "running"
        reaper.run(10.0 + LEASE)
        assert state(store, job_id) == "pending"

    def test_after_it_stood_still_it_waits_for_a_third_of_one(self, store: Store, clock: StoreClock) -> None:
        """J6: who stood still with it renews at once."""
        job_id = self.lost(store, clock)
        reaper = self.reaper(store)
        reaper.stood_still(10.0)
        reaper.run(10.0 + LEASE / 3 - 0.01)
        assert state(store, job_id) == "running"
        reaper.run(10.0 + LEASE / 3)
        assert state(store, job_id) == "pending"

    def test_an_outage_counts_also_for_who_stood_still(self, store: Store, clock: StoreClock) -> None:
        """J6"""
        job_id = self.lost(store, clock)
        reaper = self.reaper(store)
        reaper.saw_outage(10.0)
        reaper.stood_still(10.0)
        reaper.run(10.0 + LEASE - 0.01)
        assert state(store, job_id) == "running"

    def test_a_call_that_was_held_up_is_an_outage(self, store: Store, clock: StoreClock) -> None:
        """J6: whatever held up the heartbeat held up renewals too, so that what comes next in the same pass waits."""
        real = TurnableClock(START)
        here = ServiceSet(store, WorkerOptions(app="shop:app", name="ana", lease=LEASE), 7, real)
        heartbeat, *others = here.services
        here.services = [Service("heartbeat", 1.0, lambda _now: real.sleep(LEASE)), *others]
        job_id = self.lost(store, clock)
        here.tick(0.0, asked_to_drain=False)
        assert state(store, job_id) == "running"
        here.services = [heartbeat, *others]
        here.tick(1.1 * LEASE, asked_to_drain=False)
        assert state(store, job_id) == "running"
        here.tick(2 * LEASE, asked_to_drain=False)
        assert state(store, job_id) == "pending"

    def test_a_reap_that_stood_in_line_itself_takes_nothing_away(self, store: Store, clock: StoreClock) -> None:
        """J7: the lock was had at last, and not by those who would have renewed."""
        job_id = self.lost(store, clock)
        line = TurnableClock(START)

        class Line:
            """A store whose transactions begin late, once."""

            held_up = LEASE

            def __getattr__(self, name: str) -> Any:
                return getattr(store, name)

            def together(self, work: Any) -> Any:
                line.sleep(self.held_up)
                self.held_up = 0.0
                return store.together(work)

        reaper = Reaper(cast(Store, Line()), LEASE, line)
        reaper.run(0.0)
        assert state(store, job_id) == "running"
        reaper.run(1.99 * LEASE)
        assert state(store, job_id) == "running"
        reaper.run(2 * LEASE)
        assert state(store, job_id) == "pending"

    def test_a_server_younger_than_a_lease_was_away(self, postgres_store_url: str) -> None:
        """J6: it has restarted, and nobody can have renewed meanwhile."""
        with closing(another_store(postgres_store_url)) as store:
            job_id = enqueue(store)
            claim_one(store, lease=0.0)
            lease = age(store) + 2.0
            reaper = Reaper(store, lease)
            # It may have restarted again since it was asked.
            for now in (0.0, 1000.0, 2000.0):
                reaper.run(now)
                assert state(store, job_id) == "running" or age(store) >= lease
            until(lambda: age(store) >= lease)
            reaper.run(3000.0)
            assert state(store, job_id) == "pending"

    def test_leases_that_must_stay_keep_no_other_waiting(self, postgres_store_url: str) -> None:
        """L-09 of other systems: a full batch that it may not touch stands first, one to be reaped last."""
        with closing(another_store(postgres_store_url)) as store, closing(plain_connection(postgres_store_url)) as busy:
            held = [enqueue(store) for _ in range(7)]
            for _ in held:
                claim(store, limit=1, lease=0.0)
            last = enqueue(store)
            claim(store, limit=1, lease=0.0)
            busy.execute("SELECT 1 FROM detent.job WHERE id = ANY (%s) FOR UPDATE", (held,))
            self.reaper(store, batch=3).run(0.0)
            assert state(store, last) == "pending"
            assert {state(store, job_id) for job_id in held} == {"running"}
            busy.rollback()
            self.reaper(store, batch=3).run(0.0)
            assert {state(store, job_id) for job_id in held} == {"pending"}


def age(store: Store) -> float:
    """For how long its server has been answering."""
    up_for = store.up_for()
    assert up_for is not None
    return up_for


def said(caplog: pytest.LogCaptureFixture) -> list[str]:
    """The invariants that were said to be broken, in order."""
    return [record.message.split()[1] for record in caplog.records if record.name == "detent.worker"]


def walk(invariants: Invariants) -> None:
    """To its end."""
    while not invariants.step():
        pass


def test_a_violation_is_said_once(
    store: Store, store_url: str, clock: StoreClock, caplog: pytest.LogCaptureFixture
) -> None:
    """R2: continuously, and without saying the same with every walk; again where it was mended and came back."""
    for _ in range(5):
        enqueue(store)
    invariants = Invariants(store, rows_max=2)
    ready = table(store_url, "ready")
    with caplog.at_level(logging.ERROR, "detent.worker"), closing(plain_connection(store_url)) as by_hand:
        walk(invariants)
        assert said(caplog) == []
        lost = by_hand.execute(f"SELECT min(job_id) FROM {ready}").fetchone()[0]
        for _ in range(2):
            by_hand.execute(f"DELETE FROM {ready} WHERE job_id = {lost}")
            by_hand.commit()
            walk(invariants)
            walk(invariants)
            assert store.repair("ana", "lost", apply=True) != []
            walk(invariants)
    assert said(caplog) == ["pending_is_queued_once"] * 2


def test_a_worker_that_starts_on_a_damaged_database_says_so(
    store: Store, store_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    """R2: with its first pass, by the log and by an alert; a place in the queue is lost, and another is of nobody."""
    lost = enqueue(store)
    with closing(plain_connection(store_url)) as by_hand:
        by_hand.execute(f"UPDATE {table(store_url, 'ready')} SET job_id = 424242 WHERE job_id = {lost}")
        by_hand.commit()
    with caplog.at_level(logging.ERROR, "detent.worker"):
        services(store).tick_alone(0.0)
    assert set(said(caplog)) == {"no_row_is_orphaned", "pending_is_queued_once"}
    scopes = {row.scope for row in store.alert_list("firing", 10)}
    assert scopes == {"invariant:no_row_is_orphaned", "invariant:pending_is_queued_once"}


class _SlowClock(TurnableClock):
    """Half a second passes between two looks at it."""

    def monotonic(self) -> float:
        self.advance(0.5)
        return super().monotonic()


def test_the_walk_takes_a_hundredth_of_the_time(
    store: Store, store_url: str, clock: StoreClock, caplog: pytest.LogCaptureFixture
) -> None:
    """R2: it begins a minute after its worker, and after a step it rests for a hundred times as long."""
    older, newer = enqueue(store), enqueue(store)
    with closing(plain_connection(store_url)) as by_hand:
        by_hand.execute(f"DELETE FROM {table(store_url, 'ready')} WHERE job_id = {older}")
        by_hand.commit()
    run = Invariants(store, _SlowClock(START)).service().run
    with caplog.at_level(logging.ERROR, "detent.worker"):
        run(0.0)  # the cheap parts
        assert said(caplog) == ["pending_is_queued_once"]
        store.repair("ana", "lost", apply=True)
        with closing(plain_connection(store_url)) as by_hand:
            by_hand.execute(f"DELETE FROM {table(store_url, 'ready')} WHERE job_id = {newer}")
            by_hand.commit()
        run(59.0)
        run(60.5)  # the schema
        run(110.0)
        assert len(said(caplog)) == 1
        run(111.0)  # the jobs
        assert said(caplog) == ["pending_is_queued_once"] * 2


def test_operations_go_on_by_themselves(store: Store, clock: StoreClock) -> None:
    """J14: whoever began one may go away."""
    ids = [enqueue(store) for _ in range(3)]
    row = store.operation_start(NewOperation(id=store.ids_reserve(1), action="cancel", actor="ana"))
    tick(services(store), 0.0)
    ended = store.operation_get(row.id)
    assert ended is not None
    assert (ended.state, ended.changed) == ("done", 3)
    assert {state(store, job_id) for job_id in ids} == {"cancelled"}


def test_pipeline_runs_go_and_what_they_staged_goes_sooner(store: Store, clock: StoreClock) -> None:
    """J16: with the walk of every hour; the run on which the watermark stands is kept."""
    old = completed(store, dict.fromkeys("abcde", "1"))
    clock.advance(timedelta(hours=2))
    new = completed(store, {"a": "2"})
    retention = Retention(store, Keep(succeeded=0, others=30, staged=1 / 24), portion=2)
    for moment in range(9):
        retention.run(float(moment))
    assert {run.id: run.consolidated for run in store.pipeline_list()} == {old.id: 5, new.id: 1}
    clock.advance(1)
    assert store.pipeline_prune(clock.now(), old.created_at, 100).rows == 1
    clock.advance(timedelta(days=31))
    for moment in range(9, 18):
        retention.run(float(moment))
    assert [run.id for run in store.pipeline_list()] == [new.id]


def test_a_jump_of_the_clock_takes_nothing_from_a_living_holder(store: Store, clock: StoreClock) -> None:
    """J5, J7: neither does a worker that was there, nor one that starts after the jump."""
    old, fresh = services(store, 7), services(store, 8)
    tick(old, 0.0)
    held = enqueue(store)
    claim(store, lease=LEASE)
    clock.advance(600)
    tick(fresh, 0.0)
    tick(old, 2.0)
    assert old.heartbeat.jumped.is_set()
    assert state(store, held) == "running"
    clock.advance(LEASE)
    tick(fresh, 2.0)
    assert state(store, held) == "pending"


def leases_of(store: Store, held: Sequence[Claimed]) -> list[int]:
    """Under which leases these jobs are held."""
    rows = store.job_get([one.job_id for one in held])
    return sorted({row.lease_id for row in rows if row is not None and row.lease_id is not None})


def silent(recovery: Recovery) -> list[tuple[int, str]]:
    """What it finds at one look."""
    recovery.run(0.0)
    return [(row.job_id, row.kind) for row in recovery.take()]


def test_a_tasks_own_times_decide_which_jobs_are_stopped(store: Store, clock: StoreClock) -> None:
    """R1: before those of its queue; a queue that asks a person first goes on asking."""
    store.task_times_put([TaskTimes(task="mail.send", stale_after=30.0)])
    allowed, _ = enqueue(store, queue="a"), enqueue(store, queue="b")
    recovery = Recovery(store)
    recovery.leases = leases_of(store, claim(store, lease=86_400.0))
    store.recovery_set("a", 300, None, "ana")
    clock.advance(30)
    assert silent(recovery) == [(allowed, "stale")]


def test_a_worker_stops_its_own_silent_jobs_where_their_queue_allows_it(store: Store, clock: StoreClock) -> None:
    """R1: only the holder stops them, so nothing runs twice; in other queues a person decides. Nothing is cancelled."""
    stale, stalled, _ = enqueue(store, queue="a"), enqueue(store, queue="a"), enqueue(store, queue="b")
    held = claim(store, lease=86_400.0)
    store.job_start([(one.job_id, one.attempt) for one in held if one.job_id == stalled])
    enqueue(store, queue="a")
    claim(store, lease=86_400.0)
    store.recovery_set("a", 300, 600, "ana")
    recovery = Recovery(store)
    clock.advance(600)
    assert silent(recovery) == []
    recovery.leases = leases_of(store, held)
    assert sorted(silent(recovery)) == [(stale, "stale"), (stalled, "stalled")]
    build_ops_recovery_service(store).run(0.0)
    assert {row.cancel_requested_at for row in store.job_get([stale, stalled]) if row is not None} == {None}


def test_a_silent_ops_run_is_cancelled(store: Store, clock: StoreClock) -> None:
    """R1: a script holds it, which no worker can stop."""
    run = queue_run(store)
    claim_run(store)
    store.recovery_set(job(store, run).queue, 30, 600, "ana")
    clock.advance(31)
    build_ops_recovery_service(store).run(0.0)
    assert state(store, run) == "cancelled"


def test_it_is_known_when_the_next_thing_is_due(store: Store, clock: StoreClock) -> None:
    """A worker sleeps until then: an idle one until it has to show that it lives, one that knows of a job that comes
    due before that until its time has come."""
    these = services(store)
    (heartbeat,) = [one for one in these.services if one.name == "heartbeat"]
    # The first walk of retention takes a few seconds.
    for now in (0.0, 2.0, 4.0, 6.0, 8.0):
        tick(these, now)
    assert heartbeat.calm_every is not None
    assert these.next_quick(8.0) == 8.0 + heartbeat.calm_every
    assert these.next_alone(8.0) > 8.0
    enqueue(store, due_at=clock.now() + timedelta(seconds=0.5))
    these.tick(10.0, asked_to_drain=False)
    assert these.next_quick(10.0) == pytest.approx(10.5)


def test_a_worker_that_ends_adds_up_the_counts(store: Store) -> None:
    these = services(store)
    tick(these, 0.0)
    succeeded(store)
    these.close()
    assert store.counts_fold(10) == 0
    rates = store.rates(START - timedelta(hours=1), 60)
    assert sum(one.moves for one in rates if one.to_state == "succeeded") == 1
