"""The schema `ops`, as psql and any driver see it: signatures, defaults, results, refusals, rights."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import psycopg
import pytest
from psycopg.types.json import Jsonb

from detent.app.detent import Detent
from detent.errors import TABLE, InvalidInput, InvalidTransition, KeyConflict, LeaseLost, NotFound
from detent.lifecycle.library import OPS_RUN
from detent.store.open import open_store
from detent.store.postgres.roles import INCLUDES
from detent.store.postgres.store import PostgresStore
from detent.testing.stores import StoreClock, turnable_store
from tests.contract.ops.sample_ops_runs import run_in
from tests.deadlines import scaled
from tests.store.postgres.connections import run_sql

Sql = Callable[..., list[tuple[Any, ...]]]
SIGNATURES = """
SELECT p.proname, pg_get_function_arguments(p.oid), pg_get_function_result(p.oid), p.prosecdef, p.proconfig,
       has_function_privilege('public', p.oid, 'EXECUTE')
  FROM pg_proc p WHERE p.pronamespace = 'ops'::regnamespace
"""


@pytest.fixture
def clock(postgres_store_url: str) -> Iterator[StoreClock]:
    with turnable_store(postgres_store_url) as (_, turned):
        yield turned


@pytest.fixture
def sql(postgres_store_url: str, clock: StoreClock) -> Iterator[Sql]:
    """Statements with their values, each a transaction of its own."""
    with psycopg.connect(postgres_store_url, autocommit=True) as connection:
        yield lambda statement, *values: connection.execute(statement.encode(), values).fetchall()


def refused(sql: Sql, kind: type[Exception], *statement: Any) -> str:
    with pytest.raises(psycopg.Error) as refusal:
        sql(*statement)
    assert refusal.value.sqlstate == TABLE[kind].sqlstate  # type: ignore[index]
    return str(refusal.value.diag.message_primary)


def claim(sql: Sql, worker: str = "worker-001") -> tuple[str, str]:
    ((run, *_, token),) = sql("SELECT * FROM ops.claim_next_run(%s)", worker)
    return run, token


def test_the_signatures_are_those_that_scripts_call(sql: Sql) -> None:
    """O1: parameters, defaults and results; the token comes last, and may be left out."""
    found = {name: (arguments, result) for name, arguments, result, *_ in sql(SIGNATURES)}
    assert found["queue_run"] == (
        "p_project_id text, p_env text, p_git_sha text, p_git_ref text, p_metadata jsonb DEFAULT '{}'::jsonb, "
        "p_idempotency_key text DEFAULT NULL::text, p_expires_at timestamp with time zone DEFAULT NULL::timestamp with "
        "time zone",
        "TABLE(run_id text, status text, queued_at timestamp with time zone)",
    )
    assert found["claim_next_run"] == (
        "p_worker_id text",
        "TABLE(run_id text, project_id text, env_id text, git_sha text, git_ref text, metadata jsonb, token text)",
    )
    assert found["append_event"] == (
        "p_run_id text, p_level text, p_message text, p_payload jsonb DEFAULT '{}'::jsonb, "
        "p_token text DEFAULT NULL::text",
        "text",
    )
    assert found["renew_run"] == ("p_run_id text, p_token text DEFAULT NULL::text", "text")
    assert found["finish_run"] == (
        "p_run_id text, p_status text, p_metadata jsonb DEFAULT '{}'::jsonb, p_token text DEFAULT NULL::text",
        "text",
    )


def test_they_run_as_the_owner_with_a_fixed_path_and_are_nobodys_by_default(sql: Sql) -> None:
    """S2"""
    for name, _, _, definer, settings, public in sql(SIGNATURES):
        assert (definer, public) == (True, False), name
        assert any(one.startswith("search_path=pg_catalog, detent") and one.endswith("pg_temp") for one in settings)


def test_a_run_in_sql_alone(sql: Sql, clock: StoreClock) -> None:
    """O1, O2: by position and by name, and the views show it at each step."""
    ((run, status, queued_at),) = sql(
        "SELECT * FROM ops.queue_run(p_project_id := 'proj-123', p_env := 'staging', p_git_sha := 'abc', "
        "p_git_ref := 'main', p_metadata := %s)",
        Jsonb({"trigger": "webhook"}),
    )
    assert (status, queued_at) == ("queued", clock.now())
    clock.advance(15)
    ((claimed, project, env_id, sha, ref, metadata, token),) = sql("SELECT * FROM ops.claim_next_run('worker-001')")
    assert (claimed, project, sha, ref, metadata) == (run, "proj-123", "abc", "main", {"trigger": "webhook"})
    assert sql("SELECT env_id, project_id, name FROM ops.environments") == [(env_id, "proj-123", "staging")]
    look = "SELECT status, claimed_by, started_at FROM ops.runs WHERE run_id = %s"
    assert sql(look, run) == [("claimed", "worker-001", clock.now())]
    assert sql("SELECT ops.append_event(%s, 'info', 'Starting build process')", run) == [(f"{run}/2",)]
    assert sql("SELECT ops.append_event(%s, 'info', 'Starting build process')", run) == [(f"{run}/2",)]
    assert sql(look, run)[0][0] == "running"
    ended = "SELECT ops.finish_run(%s, 'success', %s, %s)"
    assert sql(ended, run, Jsonb({"exit_code": 0}), token) == [("success",)]
    assert sql(ended, run, Jsonb({"exit_code": 7}), token) == [("success",)]
    shown = sql("SELECT status, finished_at, metadata->'exit_code', metadata->>'trigger' FROM ops.runs")
    assert shown == [("success", clock.now(), 0, "webhook")]
    assert sql("SELECT event_id, level, message, payload FROM ops.run_events ORDER BY seq") == [
        (f"{run}/1", "info", "Run claimed by worker", {"worker_id": "worker-001"}),
        (f"{run}/2", "info", "Starting build process", {}),
    ]
    assert sql("SELECT * FROM ops.claim_next_run('worker-001')") == []


def test_the_same_runs_in_python(postgres_store_url: str, sql: Sql, clock: StoreClock) -> None:
    """O1: over the same jobs; a key given in SQL is known in Python, and both merge metadata alike."""
    queue = "SELECT run_id FROM ops.queue_run('shop', 'staging', 'abc', %s, '{\"a\":1}', 'k')"
    ((run,),) = sql(queue, 'it\'s "quoted" ü \\ $(x)')
    claim(sql)
    clock.advance(300)
    with Detent(postgres_store_url) as app:
        again = app.ops.queue("shop", "staging", git_sha="abc", git_ref='it\'s "quoted" ü \\ $(x)', key="k")
        assert (again.id, again.created) == (run, False)
        app.store.lease_reap(10)
        seen = app.ops.get(run)
    ((metadata,),) = sql("SELECT metadata FROM ops.runs")
    assert seen.metadata == metadata
    assert metadata["reason"] == "Stale run (claimed for >5 minutes without events)"
    assert set(metadata) == {"a", "cancelled_by", "reason", "original_worker", "claimed_at"}


def test_the_refusals_have_codes_and_say_what_is_allowed(sql: Sql) -> None:
    """L2, O2"""
    sql("SELECT ops.queue_run('shop', 'staging', 'abc', 'main', '{}', 'k')")
    said = refused(sql, KeyConflict, "SELECT ops.queue_run('shop', 'staging', 'abd', 'main', '{}', 'k')")
    assert "key 'k' belongs to run-" in said
    run, token = claim(sql)
    refused(sql, InvalidTransition, "SELECT ops.finish_run(%s, 'success')", run)
    refused(sql, LeaseLost, "SELECT ops.append_event(%s, 'info', 'x', '{}', '1.99')", run)
    refused(sql, LeaseLost, "SELECT ops.finish_run(%s, 'failed', '{}', '2' || substr(%s, 2))", run, token)
    for wrong in ("run-99", "run-", "seventeen", "run-1; --", "run-99999999999999999999", None):
        refused(sql, NotFound, "SELECT ops.append_event(%s, 'info', 'x')", wrong)
        refused(sql, NotFound, "SELECT ops.finish_run(%s, 'failed')", wrong)


def test_a_refused_end_says_what_the_lifecycle_allows(postgres_store_url: str, sql: Sql) -> None:
    """L1, L2: in the words that Python has."""
    with closing(open_store(postgres_store_url)) as store:
        for found in OPS_RUN.states:
            held = run_in(store, found)
            for end in ("success", "failed", "cancelled"):
                if end != found and (found, end) not in OPS_RUN.pairs:
                    said = refused(sql, InvalidTransition, f"SELECT ops.finish_run('run-{held.job_id}', '{end}')")
                    expected = InvalidTransition("ops_run", f"run-{held.job_id}", found, end, OPS_RUN.allowed(found))
                    assert said == str(expected)
            sql("SELECT ops.cancel_run(%s, 'bob')", f"run-{held.job_id}") if not OPS_RUN.final & {found} else None


def test_bad_input_is_refused_and_leaves_nothing(sql: Sql) -> None:
    """S3: of every parameter; a message names it."""
    for wrong, field in (
        ("ops.queue_run('', 'staging', 'a', 'b')", "p_project_id"),
        ("ops.queue_run(NULL, 'staging', 'a', 'b')", "p_project_id"),
        ("ops.queue_run('shop', repeat('x', 201), 'a', 'b')", "p_env"),
        ("ops.queue_run('shop', 'staging', 'a', repeat('x', 1001))", "p_git_ref"),
        ("ops.queue_run('shop', 'staging', 'a', 'b', '{}', repeat('x', 513))", "p_idempotency_key"),
        ("ops.queue_run('shop', 'staging', 'a', 'b', jsonb_build_object('x', repeat('x', 17000)))", "p_metadata"),
        ("ops.claim_next_run('')", "p_worker_id"),
        ("ops.append_event('run-1', '', 'x')", "p_level"),
        ("ops.append_event('run-1', 'info', repeat('x', 66000))", "p_message"),
        ("ops.append_event('run-1', 'info', 'x', '{}', 'mine')", "p_token"),
        ("ops.finish_run('run-1', 'done')", "p_status"),
        ("ops.finish_run('run-1', NULL)", "p_status"),
        ("ops.cancel_run('run-1', '')", "p_cancelled_by"),
    ):
        assert refused(sql, InvalidInput, f"SELECT {wrong}").startswith(f"{field}: found")
    with pytest.raises(psycopg.Error, match="p_metadata: found a JSON value of type array; allowed: an object"):
        sql("SELECT ops.queue_run('shop', 'staging', 'a', 'b', '[]')")
    assert sql("SELECT * FROM ops.runs") == []
    assert sql("SELECT * FROM ops.environments") == []


def test_whoever_listens_hears_every_change(postgres_store_url: str, sql: Sql, clock: StoreClock) -> None:
    """O1, E6: also of what the reaper and the verbs of jobs do; a line that changes nothing is not news."""
    with psycopg.connect(postgres_store_url, autocommit=True) as listener:
        listener.execute("LISTEN ops_runs")
        ((run, *_),) = sql("SELECT * FROM ops.queue_run('shop', 'staging', 'abc', 'main')")
        claim(sql)
        sql("SELECT ops.append_event(%s, 'info', 'one'), ops.append_event(%s, 'info', 'two')", run, run)
        clock.advance(600)
        sql("SELECT * FROM detent.lease_reap_v2(10)")
        sql("SELECT ops.queue_run('shop', 'staging', 'abc', 'main')")
        sql("SELECT detent.job_cancel_v1(ARRAY[max(substr(run_id, 5)::bigint)], 'ana') FROM ops.runs")
        heard = [note.payload for note in listener.notifies(timeout=scaled(60), stop_after=6)]
    first, second = sorted(int(name.removeprefix("run-")) for (name,) in sql("SELECT run_id FROM ops.runs"))
    assert heard == [
        *(f'{{"run_id":"run-{first}","status":"{status}"}}' for status in ("queued", "claimed", "running", "failed")),
        *(f'{{"run_id":"run-{second}","status":"{status}"}}' for status in ("queued", "cancelled")),
    ]


def test_a_schema_of_somebody_elses_is_left_alone(postgres_url: str) -> None:
    """O1: Detent works beside it, without the façade."""
    run_sql(postgres_url, "CREATE SCHEMA ops", "CREATE TABLE ops.runs (id integer)")
    with Detent(postgres_url) as app:
        assert app.ops.queue("shop", "staging").state == "queued"
        app.migrate()
    with psycopg.connect(postgres_url) as connection:
        assert connection.execute(SIGNATURES.encode()).fetchall() == []
        assert connection.execute("SELECT * FROM ops.runs").fetchall() == []


def test_an_event_that_is_being_written_is_not_overtaken_by_the_reaper(
    postgres_store_url: str, sql: Sql, clock: StoreClock
) -> None:
    """R1: whoever looks for stale runs meets a locked one, passes it over, and finds it begun when it looks again."""
    sql("SELECT ops.queue_run('shop', 'staging', 'abc', 'main')")
    run, token = claim(sql)
    clock.advance(299)
    with psycopg.connect(postgres_store_url) as writer:
        writer.execute("SELECT ops.append_event(%s, 'info', 'at last', '{}', %s)", (run, token))
        clock.advance(1)
        assert sql("SELECT aborted, passed_over FROM detent.lease_reap_v2(10)") in ([([], 0)], [([], 1)])
        writer.commit()
    sql("SELECT * FROM detent.lease_reap_v2(10)")
    assert sql("SELECT status FROM ops.runs") == [("running",)]


def test_a_reaper_that_was_first_leaves_the_event_refused(postgres_store_url: str, sql: Sql, clock: StoreClock) -> None:
    """C4: the event waits for it, and then finds nobody who holds the run."""
    sql("SELECT ops.queue_run('shop', 'staging', 'abc', 'main')")
    run, token = claim(sql)
    clock.advance(300)
    with psycopg.connect(postgres_store_url) as reaper, ThreadPoolExecutor(1) as pool:
        reaper.execute("SELECT * FROM detent.lease_reap_v2(10)")
        late = pool.submit(refused, sql, LeaseLost, "SELECT ops.append_event(%s, 'info', 'x', '{}', %s)", run, token)
        reaper.commit()
        assert "the job is cancelled" in late.result(60)
    assert sql("SELECT status FROM ops.runs") == [("cancelled",)]


def test_each_role_may_do_its_part(postgres_store_url: str, sql: Sql) -> None:
    """S2: a client queues and stops, a worker claims, writes and finishes, a viewer looks; no one touches tables."""
    with closing(PostgresStore(postgres_store_url)) as store:
        store.install_roles()
    allowed = """SELECT p.proname FROM pg_proc p
                  WHERE p.pronamespace = 'ops'::regnamespace AND has_function_privilege(%s, p.oid, 'EXECUTE')"""
    work = {"claim_next_run", "append_event", "renew_run", "finish_run"}
    for role, functions in (
        ("viewer", set()),
        ("client", {"queue_run", "cancel_run"}),
        ("worker", {"queue_run", "cancel_run"} | work),
        ("admin", {"queue_run", "cancel_run"} | work),
    ):
        assert {name for (name,) in sql(allowed, f"detent_{role}")} == functions, role
        assert sql("SELECT has_table_privilege(%s, 'ops.runs', 'SELECT')", f"detent_{role}") == [(True,)]
        assert sql("SELECT has_table_privilege(%s, 'ops.runs', 'INSERT, UPDATE')", f"detent_{role}") == [(False,)]
        assert sql("SELECT has_table_privilege(%s, 'detent.ops_run', 'SELECT')", f"detent_{role}") == [(False,)]
    with psycopg.connect(postgres_store_url, autocommit=True) as client:
        client.execute("SET ROLE detent_client")
        assert client.execute("SELECT status FROM ops.queue_run('shop', 'staging', 'a', 'b')").fetchall() == [
            ("queued",)
        ]
        assert client.execute("SELECT status, env FROM ops.runs").fetchall() == [("queued", "staging")]
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            client.execute("SELECT ops.claim_next_run('eve')")
    run_sql(postgres_store_url, *(f"DROP OWNED BY detent_{role}" for role in INCLUDES))
