"""How little a worker asks of the database while nothing happens, and how soon it sees what does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import timedelta
from typing import Any, cast

import pytest

from detent.model.clock import TurnableClock
from detent.model.service_records import Agenda
from detent.store.contract import Store
from detent.store.jobs.filters import JobFilter
from detent.testing.stores import START, StoreClock
from detent.worker.options import WorkerOptions
from detent.worker.services.job_activity import JobActivity
from detent.worker.services.service_set import ServiceSet
from tests.contract.alerts.sample_policies import policy, rested
from tests.contract.batches.sample_batch_runs import applied_run
from tests.contract.jobs.sample_jobs import claim, enqueue, quarantined

AT_REST = 40.0
MINUTES = 5


class Counting:
    """A store that counts what is asked of it."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.asked: Counter[str] = Counter()

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._store, name)
        # A deadline for answers asks nothing by itself.
        if not callable(found) or name == "answering_within":
            return found

        def counted(*args: Any, **options: Any) -> Any:
            self.asked[name] += 1
            return found(*args, **options)

        return counted


class Life:
    """The services of one worker, and time, which passes from one thing that is due to the next."""

    def __init__(self, store: Store, clock: StoreClock) -> None:
        self.counting = Counting(store)
        self._clock = clock
        options = WorkerOptions(app="shop:app", name="ana", lease=30.0)
        self._services = ServiceSet(cast(Store, self.counting), options, 7, TurnableClock(START))
        self.now = 0.0

    def live(self, seconds: float, until: Callable[[], bool] = lambda: False) -> float:
        """For so long, or until that holds; how long it took."""
        began, end = self.now, self.now + seconds
        while self.now < end:
            self._services.tick(self.now, asked_to_drain=False)
            self._services.tick_alone(self.now)
            if until():
                break
            due = min(self._services.next_quick(self.now), self._services.next_alone(self.now), end)
            step = timedelta(seconds=max(0.001, due - self.now))
            self._clock.advance(step)
            self.now += step.total_seconds()
        return self.now - began

    def close(self) -> None:
        """It ends."""
        self._services.close()


@pytest.fixture
def life(store: Store, clock: StoreClock) -> Iterator[Life]:
    """A worker that has been idle for a while."""
    with closing(Life(store, clock)) as alive:
        alive.live(AT_REST)
        yield alive


def fires(store: Store, name: str) -> Callable[[], bool]:
    return lambda: any(row.policy == name for row in store.alert_list("firing"))


def test_an_idle_worker_asks_little(store: Store, life: Life) -> None:
    """W3: its sign of life, and now and then a look that nothing is wrong."""
    life.counting.asked.clear()
    life.live(60.0 * MINUTES)
    asked = life.counting.asked
    assert asked.total() <= 0.8 * 60 * MINUTES, asked
    assert asked["alert_measure"] >= MINUTES - 1


def test_what_goes_wrong_is_seen_as_soon_as_ever(store: Store, life: Life) -> None:
    """M2: jobs that end wake the judge."""
    rested(store, failed=60)
    assert life.live(60.0, fires(store, "dead_letters_many")) <= 10.0


def test_a_rate_that_falls_is_seen_soon(store: Store, life: Life, clock: StoreClock) -> None:
    """M2: also where the jobs end long after they were claimed, under a lease that nobody has renewed meanwhile."""
    ids = [enqueue(store, dead_letter=False, attempts_max=1) for _ in range(30)]
    assert {one.job_id for one in claim(store)} == set(ids)
    life.live(29.0)
    clock.advance(1)
    assert store.lease_reap(10).leases == 1
    assert life.live(60.0, fires(store, "success_rate_critical")) <= 15.0


def test_a_queue_that_stands_still_is_seen_in_time(store: Store, life: Life) -> None:
    """M2: nothing comes or goes, and time alone makes it wrong."""
    store.alert_policy_put(policy(name="waits", measure="oldest_ready", threshold=40.0), "ana")
    life.live(60.0)
    enqueue(store, task="nobody.knows")
    assert life.live(200.0, fires(store, "waits")) <= 40.0 + 25.0


def test_an_alert_is_over_when_its_calm_is(store: Store, life: Life) -> None:
    """M2: what fires is looked at until it is well."""
    job_id = quarantined(store)
    store.alert_policy_put(policy(threshold=0.0, calm_seconds=60.0), "ana")
    life.live(60.0, fires(store, "dead_letters"))
    store.job_discard([job_id], "ana")
    assert life.live(200.0, lambda: not store.alert_list("firing")) <= 60.0 + 20.0


def test_the_world_is_looked_at_when_it_is_due(store: Store, life: Life) -> None:
    """B6: five minutes after a run."""
    look = JobFilter(task=f"{applied_run(store).batch}.reconcile")
    waited = life.live(600.0, lambda: store.job_count(look) > 0)
    assert 300.0 <= round(waited, 6) <= 300.0 + 60.0


def heard(seconds: float, lease_checksum: int | None) -> Agenda:
    return Agenda(now=START + timedelta(seconds=seconds), lease_checksum=lease_checksum)


def test_a_change_is_looked_at_at_once_and_again_when_it_must_be_over() -> None:
    """A job may end for as long as its lease need not be renewed, and nothing else tells of it."""
    activity = JobActivity()
    activity.update(heard(0, 5))
    assert activity.next_look(heard(0, 5), None) == START
    looked = START + timedelta(seconds=1)
    assert activity.next_look(heard(2, 5), looked) == START + timedelta(seconds=30)
    activity.update(heard(30, 5))
    assert activity.next_look(heard(30, 5), START + timedelta(seconds=30)) is None
    activity.update(heard(40, None))
    assert activity.next_look(heard(40, None), START + timedelta(seconds=30)) == START + timedelta(seconds=40)
    assert activity.next_look(heard(41, None), START + timedelta(seconds=40)) is None


def test_it_is_calm_a_few_seconds_after_the_last_change() -> None:
    """Until then a worker shows that it lives more often, and hears of what comes due as much sooner."""
    activity = JobActivity()
    told = []
    for seconds, number in ((0, None), (1, 5), (5, 5), (6, 5), (7, 6), (8, None)):
        activity.update(heard(seconds, number))
        told.append(activity.is_calm)
    assert told == [True, False, False, True, False, True]
