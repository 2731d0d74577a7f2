"""A database in which every table that a move copies has rows, and what two such databases have in common."""

from __future__ import annotations

import json
from contextlib import closing
from datetime import datetime, timedelta
from typing import Any

from detent.model.alert_records import Route
from detent.model.batch_records import Observed
from detent.model.clock import to_micros
from detent.model.records import Abort, Finish
from detent.model.service_records import Fire, TaskSecrets
from detent.store.contract import Store
from detent.store.move.tables import LEFT_OUT, all_tables, copied_tables
from detent.testing.stores import StoreClock, dump, plain_connection, table
from tests.contract.batches.sample_batch_runs import NUMBERS, act, applied_run, begun, previewed_run
from tests.contract.batches.sample_batch_runs import finish as finish_held
from tests.contract.jobs.sample_jobs import finish, new_job
from tests.contract.pipelines.sample_pipeline_runs import completed
from tests.contract.schedules.sample_schedules import FIRST, schedule
from tests.contract.tokens.sample_tokens import new_token
from tests.contract.workflows.sample_workflows import children, park, spawn, step
from tests.guards.test_entities import ORDER
from tests.store.invariants.life import Life, live

__all__ = ["everything", "live_wholly", "tables_without_rows"]

RUNNING = ("running", "committed", "limited")


def live_wholly(store: Store, clock: StoreClock, url: str) -> Life:
    """The life that every corruption is planted in, without its running jobs, and what it leaves out."""
    life = live(store, clock)
    life.give(store.job_finish([Finish(life[name], 1) for name in RUNNING], "ana"))
    life.give(store.job_abort([Abort(job_id=life["asked_to_stop"], attempt=1, outcome="cancelled")], "ana"))
    _user_table(store, url)
    _services(life)
    _runs(life)
    _cancelled_tree(life)
    _times_to_the_microsecond(life)
    _late_wake_up(life, url)
    clock.advance(1)
    return life


def _user_table(store: Store, url: str) -> None:
    with closing(plain_connection(url)) as connection:
        connection.execute("CREATE TABLE orders (id integer PRIMARY KEY, state text NOT NULL)")
        connection.commit()
    store.guard_entity(ORDER, "orders", "id", "state")
    with closing(plain_connection(url)) as connection:
        connection.execute("INSERT INTO orders VALUES (1, 'placed')")
        connection.commit()
    store.entity_move(ORDER, "orders", "id", "state", "1", "pay", "ana")


def _services(life: Life) -> None:
    store, clock = life.store, life.clock
    life.give([store.token_create(new_token(store, "revoked"))])
    store.token_revoke("revoked", "ana")
    life.give([store.token_create(new_token(store, tenant="a", expires_at=clock.now() + timedelta(days=1)))])
    store.webhook_move("erp", None, "5~3")
    store.announced_put(["mail"], ["mail"])
    store.task_secrets_put([TaskSecrets(task="mail", paths=("user.password",))], False)
    store.schedule_put(schedule("hourly"))
    store.schedule_fire("hourly", FIRST, [Fire(FIRST, None)], FIRST + timedelta(hours=1))
    store.alert_tally(1000)
    clock.advance(1)
    life.enqueue("tallied")
    life.give([finish(store, life.claim("tallied"))])
    store.alert_tally(1000)
    store.alert_spread([Route("log", ("warning",))])
    store.counts_fold(5)


def _runs(life: Life) -> None:
    """A mismatch, an action on chosen targets, and a pipeline that remembers its keys."""
    store = life.store
    made = applied_run(store, ["x", "y", "z"])
    life.clock.advance(400)
    holder, no = begun(store, made.id)
    store.reconcile_record(holder, made.id, no, 0, 3, 3, [Observed(1, '{"p":2}', '{"p":3}')], True)
    finish_held(store, holder)
    life.give([act(store, previewed_run(store, ["x", "y"]).id, refs=("y",))])
    store.ids_reserve(next(NUMBERS))
    completed(store, {"k": "1", "ключ": "2"}, watermark="seen", retires=True)


def _cancelled_tree(life: Life) -> None:
    """A cancelled workflow whose children are still to be cancelled."""
    store = life.store
    life.enqueue("tree")
    held = life.claim("tree")
    life.ids["tree_child"] = first = store.ids_reserve(2)
    jobs = [new_job(store, id=first + n, task="tree_child", nonce=1) for n in range(2)]
    life.give([spawn(store, held, 2, jobs=jobs, first_id=first)])
    life.give([park(store, held, children("kids"))])
    life.give(store.job_cancel([life["tree"]], "ana", "enough"))


def _late_wake_up(life: Life, url: str) -> None:
    """A request to wake a workflow whose row was locked, which happens on PostgreSQL only."""
    with closing(plain_connection(url)) as connection:
        connection.execute(f"INSERT INTO {table(url, 'wake_request')} (n, job_id) VALUES (7, {life['flow']})")
        connection.commit()


def _times_to_the_microsecond(life: Life) -> None:
    """A workflow that sleeps until a time that a float of seconds could not hold, and text that needs care."""
    life.clock.advance(timedelta(microseconds=123_457))
    due_at = life.clock.now() + timedelta(days=3_000, microseconds=1)
    life.enqueue("asleep", tenant="größe, \"'\\\t", priority=-32_768)
    held = life.claim("asleep")
    life.give(life.store.step_record([step(held, "nap", value='"\\u0000 \\ud83d 🜁"')]))
    life.give([park(life.store, held, until=due_at)])


def everything(url: str) -> dict[str, list[tuple[Any, ...]]]:
    """Every row of every table that a move copies, as SQLite has it, without the lines about moves."""
    rows = dump(url)
    names = {one.name: one.names for one in all_tables()}
    found = {name: sorted((_plain(row) for row in rows[name]), key=repr) for name in names if name not in LEFT_OUT}
    entity = names["transition_log"].index("entity")
    found["transition_log"] = [row for row in found["transition_log"] if row[entity] != "database"]
    return found


def tables_without_rows(url: str) -> set[str]:
    """The tables that a move copies and that have no rows."""
    with closing(plain_connection(url)) as connection:
        return {
            one.name
            for one in copied_tables()
            if connection.execute(f"SELECT 1 FROM {table(url, one.name)} LIMIT 1").fetchone() is None
        }


def _plain(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(_plain_value(value) for value in row)


def _plain_value(value: Any) -> Any:
    match value:
        case datetime():
            return to_micros(value, field="a column")
        case bool():
            return int(value)
        case list():
            return json.dumps(value)
        case _:
            return value
