"""Every metric, declared once. `docs/metrics.md` is made from this table, and dashboard and alert rules are checked."""

from __future__ import annotations

from typing import Literal, NamedTuple

__all__ = ["METRICS", "PROCESS_METRICS", "SECONDS_BOUNDS", "SHARED_METRICS", "Kind", "Metric"]

Kind = Literal["gauge", "counter", "histogram"]


class Metric(NamedTuple):
    """A metric: its name in Prometheus, what it means, and its labels. The name of a counter ends in `_total`."""

    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...] = ()


SECONDS_BOUNDS = (0.001, 0.0033, 0.01, 0.033, 0.1, 0.33, 1.0, 3.3, 10.0, 33.0, 100.0, 330.0, 1000.0, 3300.0, 10000.0)
"""Upper bounds of the buckets of histograms. Each is the start of a bucket of the figures, so nothing is estimated."""

SHARED_METRICS = (
    Metric("detent_jobs", "gauge", "Jobs by queue and state.", ("queue", "state")),
    Metric("detent_dead_letters", "gauge", "Jobs that are quarantined.", ("queue",)),
    Metric("detent_oldest_ready_seconds", "gauge", "How long the oldest ready job has been due.", ("queue",)),
    Metric("detent_queue_paused", "gauge", "1 if the queue is paused.", ("queue",)),
    Metric("detent_workers", "gauge", "Workers with a heartbeat in the last ten seconds."),
    Metric("detent_worker_jobs", "gauge", "Jobs that a worker holds.", ("worker",)),
    Metric("detent_worker_slots", "gauge", "Jobs that a worker can run at once.", ("worker",)),
    Metric("detent_success_ratio", "gauge", "Share of succeeded jobs among those that ended in the last 24 hours."),
    Metric("detent_transitions_total", "counter", "Moves of jobs.", ("task", "from_state", "to_state")),
    Metric("detent_attempts_total", "counter", "Attempts that ended.", ("task", "outcome")),
    Metric("detent_retries_total", "counter", "Attempts after which the job was tried again.", ("task",)),
    Metric("detent_throttled_total", "counter", "Attempts that the other side throttled (429).", ("task",)),
    Metric("detent_leases_expired_total", "counter", "Attempts whose lease expired.", ("task",)),
    Metric("detent_run_seconds", "histogram", "How long functions ran.", ("task", "outcome")),
    Metric("detent_wait_seconds", "histogram", "How long jobs had been due before they were claimed."),
    Metric("detent_alerts_firing", "gauge", "Alerts that fire.", ("policy", "severity")),
    Metric("detent_invariant_violations", "gauge", "Invariants that `verify` or a worker found violated."),
    Metric("detent_breakers_open", "gauge", "Limits whose circuit breaker is not closed."),
    Metric("detent_database_up", "gauge", "1 if the database answered when these metrics were read."),
    Metric("detent_read_seconds", "gauge", "How long reading these metrics from the database took."),
)
"""Read from the database: every server and worker shows the same values."""

PROCESS_METRICS = (
    Metric("detent_process_claims_total", "counter", "Claims that gave jobs."),
    Metric("detent_process_claimed_jobs_total", "counter", "Jobs that were claimed."),
    Metric("detent_process_active_jobs", "gauge", "Jobs that run now."),
    Metric("detent_process_slots", "gauge", "Jobs that can run at once."),
    Metric("detent_process_children", "gauge", "Child processes that are alive."),
    Metric("detent_process_outcomes_total", "counter", "Attempts by what became of the job.", ("outcome",)),
    Metric("detent_process_written_total", "counter", "Endings, events and costs that were written."),
    Metric("detent_process_commit_seconds", "histogram", "How long writing a batch of results took, commit included."),
)
"""Of one worker since it started."""

METRICS = {metric.name: metric for metric in (*SHARED_METRICS, *PROCESS_METRICS)}
