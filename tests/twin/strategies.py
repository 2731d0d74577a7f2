"""What the twin's machine may send: few names and numbers, so that they meet, and every option now and then.

A job is named by its place among the jobs there are, running ones first, and an attempt by its distance from the
current one: so most calls come from holders, some from those who lost their lease, and some name what is not there.
"""

from __future__ import annotations

from hypothesis import strategies as st

from detent.model.records import OUTCOMES

LIMITS = ("shop", "mailer")
KEYS_OF_LIMITS = ("shop:1", "shop:2")
TASKS = ("mail", "pack")
QUEUES = ("default", "slow")
TENANTS = ("", "a", "Z", "é")
KEYS = ("k1", "k2", "detent:active:k3")
WORKERS = ("w1", "w2", "w3")

places = st.sampled_from((0, 0, 0, 1, 1, 2, 2, 3, 4, 9))
distances = st.sampled_from((0, 0, 0, 0, -1, 1))
refs = st.tuples(places, distances)
limits = st.sampled_from((1, 2, 3, 100))
texts = st.sampled_from((None, '"x"', "{}"))
reasons = st.sampled_from((None, "asked for"))
actors = st.sampled_from(("ana", "bo"))
leases = st.sampled_from((5.0, 30.0))
subsets = {
    "tasks": st.sampled_from((TASKS, TASKS, TASKS[:1], TASKS[1:], ("unknown",), ())),
    "queues": st.sampled_from((None, None, QUEUES, QUEUES[:1], QUEUES[1:])),
    "tenants": st.sampled_from((None, None, TENANTS[:2], TENANTS[2:], TENANTS[3:])),
}
turns = st.sampled_from((None, *TENANTS))
versions = st.sampled_from((None, None, {}, {TASKS[0]: (1, 2)}, {TASKS[1]: (1,)}, dict.fromkeys(TASKS, (2,))))
steps = st.sampled_from((0.000001, 0.5, 2.0, 5.0, 9.999999, 10.0, 31.0))
outcomes = st.sampled_from(OUTCOMES)
failures = st.sampled_from(("error", "crashed", "timed_out", "cancelled", "released", "snoozed", "throttled"))
fatal = st.sampled_from((False, False, False, True))
states = st.sampled_from(("pending", "running", "succeeded", "failed", "quarantined", "cancelled", "nonsense"))

new_jobs = st.fixed_dictionaries(
    {
        "again": st.sampled_from((None,) * 7 + (0,)),  # the place of a job whose id is sent once more
        "task": st.sampled_from(TASKS),
        "payload": st.sampled_from(("{}", "{}", '{"n":1}')),
        "attempts_max": st.sampled_from((1, 2, 3)),
        "due_in": st.sampled_from((None, None, None, -4.0, 0.0, 3.0)),
        "expires_in": st.sampled_from((None, None, None, -1.0, 4.0, 15.0)),
        "key": st.sampled_from((None, None, *KEYS)),
        "key_ttl": st.sampled_from((None, None, 4.0, 60.0)),
        "unique_pending": st.booleans(),
        "group": st.sampled_from((None, None, 1, 2)),
        "idempotent": st.booleans(),
        "dead_letter": st.sampled_from((True, True, False)),
    },
    optional={
        "tenant": st.sampled_from(TENANTS),
        "queue": st.sampled_from(QUEUES),
        "priority": st.sampled_from((0, 7, -3)),
        "metadata": texts,
        "correlation_id": st.sampled_from((None, "c1")),
        "traceparent": st.sampled_from((None, "t1")),
        "run_id": st.sampled_from((None, 77)),
        "limit_key": st.sampled_from((None, None, "shop", *KEYS_OF_LIMITS)),
        "cost": st.sampled_from((None, 2, 3, 5)),
    },
)

begun = st.sampled_from((0.0, 0.25, 3.000001, 3600.0))
"""Seconds from a claim to the call of the function; the last is later than now."""

events = st.fixed_dictionaries(
    {
        "ref": refs,
        "note": st.sampled_from((False, False, True)),
        "level": st.sampled_from(("info", "error")),
        "message": st.sampled_from(("begun", "half")),
        "payload": st.sampled_from((None, None, "{}")),
        "key": st.sampled_from((None, None, "e1", "e2")),
    }
)

recorded_steps = st.fixed_dictionaries(
    {
        "ref": refs,
        "version": st.sampled_from((1, 2)),
        "path": st.sampled_from(("a", "b")),
        "kind": st.sampled_from(("call", "call", "sleep")),
        "value": st.sampled_from(("1", "null")),
        "ran_for": st.sampled_from((0.0, 0.5)),
    }
)

aborts = st.fixed_dictionaries(
    {
        "ref": refs,
        "outcome": outcomes,
        "error": st.sampled_from((None, "no such street")),
        "delay": st.sampled_from((0.0, 0.0, 4.0)),
        "fatal": fatal,
        "begun_after": st.none() | begun,
    }
)

SCHEDULES = ("nightly", "hourly")
SERVICES = ("schedules", "retention")
worker_ids = st.sampled_from((901, 902, 903))

workers = st.fixed_dictionaries(
    {
        "id": worker_ids,
        "name": st.sampled_from(WORKERS),
        "host": st.just("h"),
        "pid": st.sampled_from((1, 2)),
        "queues": st.sampled_from((None, QUEUES, ())),
        "tasks": st.sampled_from((TASKS, ())),
        "slots": st.just(4),
        "running": st.sampled_from((0, 3)),
        "stopping": st.booleans(),
        "versions": st.sampled_from(({}, {TASKS[0]: (1, 2)})),
    }
)

schedules = st.fixed_dictionaries(
    {
        "name": st.sampled_from(SCHEDULES),
        "cron": st.sampled_from(("0 3 * * *", "0 * * * *")),
        "zone": st.just("UTC"),
        "catch_up": st.sampled_from(("latest", "all", "skip")),
        "task": st.sampled_from(TASKS),
        "payload": st.just("{}"),
        "queue": st.sampled_from(QUEUES),
        "attempts_max": st.sampled_from((1, 3)),
        "tenant": st.sampled_from(TENANTS),
        "priority": st.sampled_from((0, 7)),
        "dead_letter": st.booleans(),
        "idempotent": st.booleans(),
        "unique_pending": st.booleans(),
        "limit_key": st.sampled_from((None, *KEYS_OF_LIMITS)),
        "cost": st.sampled_from((None, 2)),
    }
)

operations = st.fixed_dictionaries(
    {
        "action": st.sampled_from(("retry", "cancel", "discard", "move")),
        "actor": actors,
        "reason": reasons,
        "job_state": st.sampled_from((None, None, "pending", "running", "quarantined", "cancelled")),
        "task": st.sampled_from((None, None, "mail")),
        "queue": st.sampled_from((None, None, "default")),
        "tenant": st.sampled_from((None, None, "", "a")),
        "to_queue": st.sampled_from((None, "slow")),
        "to_priority": st.sampled_from((None, 7)),
    }
)

new_limits = st.fixed_dictionaries(
    {
        "key": st.sampled_from(LIMITS),
        "rate": st.sampled_from((None, None, 1.0, 0.3)),
        "per": st.sampled_from((1.0, 7.0)),
        "burst": st.sampled_from((1.0, 2.0, 3.5)),
        "concurrency_max": st.sampled_from((None, 1, 2)),
        "tasks": st.sampled_from(((), TASKS[:1], TASKS)),
        "queues": st.sampled_from(((), (), QUEUES[:1])),
    }
)
