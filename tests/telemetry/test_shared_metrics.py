"""The metrics that are read from the database."""

from __future__ import annotations

from datetime import timedelta

import pytest

from detent.errors import DatabaseUnreachable
from detent.model.records import Abort, Finish
from detent.store.contract import Store
from detent.telemetry import shared_metrics
from detent.telemetry.samples import Histogram, LabelCap
from detent.telemetry.shared_metrics import SharedMetrics
from detent.testing.stores import StoreClock
from tests.contract.jobs.sample_jobs import abort, claim, claim_one, enqueue, quarantined, succeeded
from tests.telemetry.readings import Reading, scrape


def labels(**given: str) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(given.items()))


def lived(store: Store, clock: StoreClock) -> None:
    """Attempts with several outcomes: one done, one dead, one throttled, one expired and retried."""
    succeeded(store, queue="mail")
    quarantined(store, queue="mail")
    enqueue(store, queue="files", tenant="secret-tenant")
    held = claim_one(store)
    store.job_start([(held.job_id, held.attempt)])
    clock.advance(2)
    store.job_abort([Abort(job_id=held.job_id, attempt=1, outcome="throttled", delay=3600.0)], "ana")
    enqueue(store, queue="files")
    claim_one(store)
    clock.advance(31)
    store.lease_reap(10)
    store.queue_pause("mail", "ana")
    store.alert_raise("invariant_violated", "job:7", "critical", "broken")


def test_everything_of_m1_is_there(store: Store, clock: StoreClock) -> None:
    """M1: depth, success rate, durations, transitions, retries, 429s, dead letters, oldest, expiries, violations."""
    lived(store, clock)
    clock.advance(7)
    found = scrape(SharedMetrics(lambda: store, clock))
    mail, task = labels(queue="mail"), "mail.send"
    assert found["detent_jobs", labels(queue="mail", state="succeeded")] == 1
    assert found["detent_jobs", labels(queue="files", state="pending")] == 2
    assert found["detent_dead_letters", mail] == 1
    assert found["detent_oldest_ready_seconds", labels(queue="files")] >= 7
    assert found["detent_queue_paused", mail] == 1
    assert found["detent_success_ratio", ()] == 0.5
    assert found["detent_transitions_total", labels(task=task, from_state="pending", to_state="running")] == 4
    assert found["detent_transitions_total", labels(task=task, from_state="running", to_state="quarantined")] == 1
    assert found["detent_attempts_total", labels(task=task, outcome="done")] == 1
    assert found["detent_throttled_total", labels(task=task)] == 1
    assert found["detent_leases_expired_total", labels(task=task)] == 1
    assert found["detent_retries_total", labels(task=task)] == 1
    assert found["detent_run_seconds_count", labels(task=task, outcome="throttled")] == 1
    assert found["detent_run_seconds_sum", labels(task=task, outcome="throttled")] == 2
    assert found["detent_run_seconds_bucket", labels(task=task, outcome="throttled", le="1.0")] == 0
    assert found["detent_run_seconds_bucket", labels(task=task, outcome="throttled", le="3.3")] == 1
    assert found["detent_wait_seconds_count", ()] == 4
    assert found["detent_alerts_firing", labels(policy="invariant_violated", severity="critical")] == 1
    assert found["detent_invariant_violations", ()] == 1
    assert (found["detent_workers", ()], found["detent_database_up", ()]) == (0, 1)
    assert not any("secret-tenant" in str(key) for key in found)


def counters(found: Reading) -> Reading:
    return {key: value for key, value in found.items() if key[0].endswith(("_total", "_count", "_bucket", "_sum"))}


def test_counters_never_decrease(store: Store, clock: StoreClock) -> None:
    """Over hours, whatever is folded, joined or deleted meanwhile: Prometheus takes a decrease for a restart."""
    shared = SharedMetrics(lambda: store, clock)
    done = ("detent_attempts_total", labels(task="mail.send", outcome="done"))
    before: Reading = {}
    for number in range(1, 12):
        succeeded(store)
        if number % 3:
            while store.counts_fold(10):
                pass
        found = counters(scrape(shared))
        assert found[done] == found["detent_wait_seconds_count", ()] == number
        assert all(found[key] >= value for key, value in before.items())
        before = found
        clock.advance(timedelta(minutes=47))


def test_it_is_read_every_few_seconds_at_most(store: Store, clock: StoreClock) -> None:
    reads = []

    def verbs() -> Store:
        reads.append(1)
        return store

    shared = SharedMetrics(verbs, clock)
    for _ in range(5):
        scrape(shared)
    assert len(reads) == 1
    clock.advance(6)
    scrape(shared)
    assert len(reads) == 2


def test_labels_are_bounded(store: Store, clock: StoreClock, monkeypatch: pytest.MonkeyPatch) -> None:
    """TH4: a queue for each customer makes no time series for each customer."""
    monkeypatch.setattr(shared_metrics, "_NAMES_MAX", 3)
    for number in range(10):
        enqueue(store, queue=f"q{number}", task=f"task-{number}")
    for held in claim(store, tasks=[f"task-{number}" for number in range(10)]):
        store.job_finish([Finish(held.job_id, held.attempt)], "ana")
    found = scrape(SharedMetrics(lambda: store, clock))
    queues = {dict(key)["queue"] for name, key in found if name == "detent_jobs"}
    assert queues == {"q0", "q1", "q2", "other"}
    assert found["detent_jobs", labels(queue="other", state="succeeded")] == 7
    assert len({dict(key)["task"] for name, key in found if name == "detent_attempts_total"}) == 4


def test_a_database_that_does_not_answer(clock: StoreClock) -> None:
    def verbs() -> Store:
        raise DatabaseUnreachable("db", "it is down")

    found = scrape(SharedMetrics(verbs, clock))
    assert found["detent_database_up", ()] == 0
    assert not any(name.startswith("detent_jobs") for name, _ in found)


def test_a_failed_attempt_counts_as_failed(store: Store, clock: StoreClock) -> None:
    enqueue(store, attempts_max=1, dead_letter=False)
    abort(store, claim_one(store), error="boom")
    found = scrape(SharedMetrics(lambda: store, clock))
    assert found["detent_success_ratio", ()] == 0


def test_parts() -> None:
    cap = LabelCap(2)
    assert [cap(name) for name in ("a", "b", "c", "a")] == ["a", "b", "other", "a"]
    times = Histogram()
    times.add(0.0009, 2, 0.002)
    times.add(0.001, 1, 0.001)
    times.add(20000.0, 1, 20000.0)
    assert dict(times.cumulated())["0.001"] == 2
    assert dict(times.cumulated())["0.0033"] == 3
    assert times.cumulated()[-1] == ("+Inf", 4)
