"""A connection that made its plans while the tables were empty keeps them when the tables have grown.

For an empty table, PostgreSQL finds every plan equally good. The rows that statements read are counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from typing import Any

from detent.model.limit_records import NewLimit
from detent.model.records import Finish
from detent.model.workflow_records import Parked
from detent.store.contract import Store, Verbs
from detent.store.open import open_store
from detent.testing.stores import plain_connection
from tests.contract.jobs.sample_jobs import claim, enqueue, finish
from tests.contract.workflows.sample_workflows import is_recorded, look, park, signal, step

MANY = 200
SOME = 20
TABLES = ("job", "workflow", "workflow_step", "lease")
TASK = "mail.send"
_CLAIM = f"SELECT count(*) FROM detent.job_claim_v2(%s, 'w', NULL, '{{{TASK}}}', {MANY}, 30)"
_LANE = f"SELECT detent.lane_of('default', '{TASK}', '', 0::smallint, %s)"
_READ = """
SELECT coalesce(sum(idx_tup_fetch + seq_tup_read), 0) FROM pg_stat_xact_user_tables
 WHERE schemaname = 'detent' AND relname = ANY (%s)
"""


def read_in_transaction(connection: Any, tables: Sequence[str]) -> int:
    ((count,),) = connection.execute(_READ, (list(tables),)).fetchall()
    return int(count)


def test_a_claim_under_a_limit_reads_each_ended_attempt_once(postgres_ready_url: str) -> None:
    """J12: for each slot of an attempt that had ended, a claim read all executions. 20,000 jobs took 40 s."""
    with closing(plain_connection(postgres_ready_url)) as old, closing(open_store(postgres_ready_url)) as store:
        old.autocommit = True
        old.execute("ANALYZE")
        old.autocommit = False
        store.limit_put(NewLimit(key=TASK, concurrency_max=1_000_000, tasks=(TASK,)))
        enqueue(store)
        old.execute(_CLAIM, (store.ids_reserve(1),))
        old.commit()
        for keys in ([f"key {n}" for n in range(MANY)], [None] * MANY):
            for key in keys:
                enqueue(store, limit_key=key)
            for held in claim(store, limit=MANY):
                finish(store, held)
        for _ in range(MANY):
            enqueue(store)
        assert old.execute(_CLAIM, (store.ids_reserve(1),)).fetchall() == [(MANY,)]
        read = read_in_transaction(old, ["execution", "job", "limit_slot", "rate_limit", "ready"])
        assert read <= 30 * MANY
        old.rollback()


def test_the_lane_of_a_key_is_found_without_reading_those_of_other_keys(postgres_ready_url: str) -> None:
    """J12: enqueueing 20,000 jobs with a limit key each took two minutes."""
    with closing(plain_connection(postgres_ready_url)) as connection:
        for number in range(MANY):
            connection.execute(_LANE, (f"key {number}",))
        assert read_in_transaction(connection, ["lane"]) <= 10 * MANY
        connection.rollback()


def test_a_group_of_steps_reads_no_other_workflow(postgres_ready_url: str) -> None:
    """J12: a table that was analysed while it was empty has one row, for all that a plan knows. Recording the first
    steps of some workflows read all workflows that had begun, once for each step: 1,000 workflows a second, and fewer
    the more there were."""
    with closing(plain_connection(postgres_ready_url)) as old, closing(open_store(postgres_ready_url)) as store:
        old.autocommit = True
        old.execute("VACUUM ANALYZE")
        old.autocommit = False
        verbs = store.on(old)
        _record_some(store, verbs, 3)
        old.commit()
        for _ in range(10):
            _record_some(store, store, MANY // 10)
        read_in_transaction(old, TABLES)
        old.commit()
        _record_some(store, verbs, SOME)
        assert read_in_transaction(old, TABLES) <= 15 * SOME
        old.rollback()


def test_a_park_reads_no_other_workflow(postgres_ready_url: str) -> None:
    """J12: each park of a workflow that had recorded nothing read all workflows."""
    with closing(plain_connection(postgres_ready_url)) as old, closing(open_store(postgres_ready_url)) as store:
        old.autocommit = True
        old.execute("VACUUM ANALYZE")
        old.autocommit = False
        verbs = store.on(old)
        _park_some(store, verbs, 3)
        old.commit()
        for _ in range(10):
            _park_some(store, store, MANY // 10)
        read_in_transaction(old, TABLES)
        old.commit()
        _park_some(store, verbs, SOME)
        assert read_in_transaction(old, (*TABLES, "workflow_wait", "waiting")) <= 30 * SOME
        old.rollback()


def _park_some(store: Store, verbs: Verbs, count: int) -> None:
    """Let that many new workflows wait for a signal."""
    for _ in range(count):
        enqueue(store)
    for held in claim(store, limit=count):
        look(verbs, held, signal())
        assert isinstance(park(verbs, held, signal()), Parked)


def test_the_counts_read_only_jobs_that_have_ended(postgres_ready_url: str) -> None:
    """J12: counting 20,000 ends took 52 s if there was one job when the tables were analysed: the plan went through all
    jobs, and for each of them through all ends."""
    with closing(plain_connection(postgres_ready_url)) as old, closing(open_store(postgres_ready_url)) as store:
        enqueue(store)
        old.autocommit = True
        old.execute("VACUUM ANALYZE")
        old.autocommit = False
        verbs = store.on(old)
        assert verbs.counts_fold(100) == 0
        old.commit()
        _end_some(store, SOME)
        for _ in range(MANY):
            enqueue(store)
        read_in_transaction(old, TABLES)
        old.commit()
        assert verbs.counts_fold(100) == 1
        assert read_in_transaction(old, TABLES) <= 5 * SOME
        old.rollback()


def _end_some(store: Store, count: int) -> None:
    """Let that many jobs succeed together."""
    for _ in range(count):
        enqueue(store)
    held = claim(store, limit=count)
    store.job_finish([Finish(one.job_id, one.attempt) for one in held], "w")


def _record_some(store: Store, verbs: Verbs, count: int) -> None:
    """Let that many new workflows record two steps each, in two groups."""
    for _ in range(count):
        enqueue(store)
    held = claim(store, limit=count)
    for path in ("a", "b"):
        answers = verbs.step_record([step(one, path) for one in held])
        assert all(is_recorded(answer).created for answer in answers)
