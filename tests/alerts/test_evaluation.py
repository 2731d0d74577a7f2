"""The judge: when something is wrong by the default policies, and when it is well again."""

from __future__ import annotations

from datetime import timedelta

from msgspec.structs import replace

from detent.alerts.evaluation import evaluate_policies
from detent.alerts.policies import DEFAULTS
from detent.model.alert_records import AlertRow
from detent.model.limit_records import NewLimit
from detent.store.contract import Store
from detent.store.jobs.filters import JobSearch
from detent.testing.stores import StoreClock
from tests.contract.alerts.sample_policies import rested
from tests.contract.jobs.sample_jobs import abort, claim, claim_one, enqueue, new_job


def firing(store: Store) -> dict[str, AlertRow]:
    return {row.id: row for row in store.alert_list("firing")}


def rest(store: Store, clock: StoreClock, *, succeeded: int, failed: int, dead_letter: bool = False) -> None:
    """Run jobs to their end, and count them."""
    store.alert_tally(1000)
    clock.advance(1)
    rested(store, succeeded=succeeded, failed=failed, dead_letter=dead_letter)
    store.alert_tally(1000)


def dead(store: Store, count: int) -> None:
    """Add dead letters."""
    rested(store, failed=count)


def look_on(store: Store, clock: StoreClock, seconds: int) -> None:
    """Evaluate the policies every 30 seconds, as a worker does, for `seconds`."""
    for _ in range(seconds // 30):
        clock.advance(30)
        evaluate_policies(store)


def test_success_rate(store: Store, clock: StoreClock) -> None:
    """M2: below 97 % somebody should know, below 90 % somebody should come."""
    rest(store, clock, succeeded=97, failed=3)
    assert evaluate_policies(store).changed == 0
    rest(store, clock, succeeded=0, failed=1)
    assert evaluate_policies(store).changed == 1
    alert = firing(store)["success_rate_low/queue:default"]
    assert (alert.severity, alert.value) == ("warning", 97 / 101)
    assert alert.message == ("96.04 % of the 101 jobs that ended in queue default in 15 min succeeded, less than 97 %")
    rest(store, clock, succeeded=0, failed=8)
    evaluate_policies(store)
    assert firing(store)["success_rate_critical/queue:default"].severity == "critical"
    assert set(firing(store)) == {"success_rate_low/queue:default", "success_rate_critical/queue:default"}


def test_a_few_failures_are_no_rate(store: Store, clock: StoreClock) -> None:
    """M2: of fewer than twenty there is nothing to say."""
    rest(store, clock, succeeded=0, failed=19)
    assert evaluate_policies(store).changed == 0
    rest(store, clock, succeeded=0, failed=1)
    assert evaluate_policies(store).changed == 2


def test_the_rate_of_long_ago_does_not_count(store: Store, clock: StoreClock) -> None:
    """M2: when the window has passed, and it has been calm for a while, it is over."""
    rest(store, clock, succeeded=0, failed=20)
    evaluate_policies(store)
    look_on(store, clock, 1140)
    assert len(firing(store)) == 2
    look_on(store, clock, 60)
    assert firing(store) == {}


def test_dead_letters(store: Store, clock: StoreClock) -> None:
    """M2: more than fifty, more than a hundred; for plain jobs too."""
    dead(store, 50)
    assert evaluate_policies(store).changed == 0
    dead(store, 1)
    evaluate_policies(store)
    assert {name: row.severity for name, row in firing(store).items()} == {"dead_letters_many": "warning"}
    assert firing(store)["dead_letters_many"].message == "51 jobs are quarantined in all queues, more than 50"
    dead(store, 50)
    evaluate_policies(store)
    assert firing(store)["dead_letters_critical"].severity == "critical"


def test_throttled_burst(store: Store, clock: StoreClock) -> None:
    """M2, B5: more than three in five minutes, and over five calm minutes after the last of them counted."""
    for number in range(4):
        assert evaluate_policies(store).changed == 0, number
        enqueue(store)
        abort(store, claim_one(store), "throttled", delay=3600)
        clock.advance(60)
    assert evaluate_policies(store).changed == 1
    assert "4 attempts in all queues were throttled" in firing(store)["throttled_burst"].message
    look_on(store, clock, 300)
    assert set(firing(store)) == {"throttled_burst"}
    look_on(store, clock, 30)
    assert firing(store) == {}


def test_a_breaker_that_opens(store: Store, clock: StoreClock) -> None:
    """M2, B5: each on its own, until it is closed."""
    store.limit_put(NewLimit(key="shop", concurrency_max=100, tasks=("mail.send",)))
    for _ in range(6):
        enqueue(store)
    for one in claim(store):
        abort(store, one, "throttled", delay=1)
    evaluate_policies(store)
    assert "breaker_open/limit:shop" in firing(store)
    store.limit_reset("shop", "ana")
    clock.advance(60)
    evaluate_policies(store)
    assert "breaker_open/limit:shop" not in firing(store)


def test_a_queue_in_which_nothing_moves(store: Store, clock: StoreClock) -> None:
    """M2, M1: the oldest that is due, while its queue is not paused."""
    enqueue(store, queue="mail")
    clock.advance(900)
    assert evaluate_policies(store).changed == 0
    clock.advance(1)
    evaluate_policies(store)
    assert firing(store)["queue_stalled/queue:mail"].message == (
        "the oldest job that is due in queue mail has been waiting for 15 min, longer than 15 min"
    )
    claim(store)
    evaluate_policies(store)
    clock.advance(59)
    evaluate_policies(store)
    assert firing(store)
    clock.advance(1)
    evaluate_policies(store)
    assert not firing(store)


def test_what_comes_and_goes_is_one_alert(store: Store, clock: StoreClock) -> None:
    """M2: flapping is told once."""
    dead(store, 50)
    for _ in range(5):
        dead(store, 1)
        evaluate_policies(store)
        clock.advance(30)
        last = store.job_list(JobSearch(state="quarantined")).rows[-1]
        store.job_discard([last.id], "ana")
        evaluate_policies(store)
        clock.advance(30)
    assert [line.to_state for line in store.transitions("alert", "dead_letters_many")] == ["firing"]
    assert firing(store)["dead_letters_many"].raised == 5


def test_what_somebody_set_holds(store: Store) -> None:
    """M2: another threshold, of each queue; or none of it at all."""
    dead(store, 3)
    store.alert_policy_put(
        replace(DEFAULTS["dead_letters_many"], threshold=2.0, each="queue", message="{value} in {scope}"), "ana"
    )
    evaluate_policies(store)
    assert firing(store)["dead_letters_many/queue:default"].message == "3 in queue default"
    store.alert_policy_put(replace(DEFAULTS["dead_letters_many"], enabled=False), "ana")
    assert evaluate_policies(store).changed == 0
    assert firing(store) == {}


def test_an_event_is_over_when_it_has_not_happened_for_a_day(store: Store, clock: StoreClock) -> None:
    """M2: of the defaults, and of those that nobody declared."""
    store.alert_raise("run_partial", "run:7", "warning", "20 of 200 failed")
    store.alert_raise("of_my_own", "", "info", "something")
    clock.advance(86_399)
    store.alert_raise("of_my_own", "", "info", "something")
    assert evaluate_policies(store).changed == 0
    clock.advance(1)
    assert evaluate_policies(store).changed == 1
    assert set(firing(store)) == {"of_my_own"}


def test_of_very_many_scopes_the_worst_are_told(store: Store, clock: StoreClock) -> None:
    """M2, G6: no storms."""
    now = clock.now()
    store.job_enqueue(
        [new_job(store, queue=f"q{number:03}", due_at=now + timedelta(seconds=number)) for number in range(120)]
    )
    clock.advance(120)
    store.job_promote(1000)
    clock.advance(901)
    evaluate_policies(store)
    told = firing(store)
    assert len(told) == 100
    assert "queue_stalled/queue:q000" in told
    assert "queue_stalled/queue:q119" not in told
