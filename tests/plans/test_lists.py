"""A page of alerts, operations or workers costs what it shows, however many there are.

The work is counted: instructions of SQLite's virtual machine, pages that PostgreSQL touches.
"""

from __future__ import annotations

import json
from contextlib import closing
from datetime import timedelta
from typing import Any

from detent.model.alert_records import AlertPlace
from detent.model.clock import TurnableClock, to_micros
from detent.model.service_records import NewOperation
from detent.store.alerts.postgres import alert_list
from detent.store.operations.postgres import operation_list
from detent.store.sqlite.driver.executor import SqliteExecutor
from detent.store.sqlite.verbs import SqliteVerbs
from detent.store.workers.postgres import worker_list
from detent.testing.stores import START, is_sqlite, plain_connection, turnable_store

FEW, MANY = 200, 20_000
PAGE = 10
_NUMBERS = "WITH RECURSIVE number (n) AS (SELECT {first} UNION ALL SELECT n + 1 FROM number WHERE n < {last})"
_FILLS = (
    """
INSERT INTO {p}alert (policy, scope, severity, state, message, since, last_at, notified_at, resolved_at)
SELECT 'mine', 's' || n, 'warning', CASE WHEN n % 2 = 0 THEN 'firing' ELSE 'resolved' END, 'm', {at}, {at}, {at},
       CASE WHEN n % 2 = 1 THEN {at} END FROM number
""",
    """
INSERT INTO {p}operation (id, action, state, filter, argument, actor, until_id, created_at, finished_at)
SELECT n, 'retry', CASE WHEN n = 1 THEN 'cancelled' ELSE 'done' END, o.filter, o.argument, 'ana', 0, {at}, {at}
  FROM number CROSS JOIN {p}operation o WHERE o.id = 1000000
""",
    """
INSERT INTO {p}worker (id, name, host, pid, tasks, slots, running, started_at, seen_at)
SELECT n, 'w' || n, 'h', 1, '[]', 1, 0, {at}, {at} FROM number
""",
)
AFTER = AlertPlace("resolved", START + timedelta(hours=1), "mine", "s5")
LISTS: dict[str, tuple[str, tuple[Any, ...]]] = {
    "alerts": ("alert_list", (None, PAGE)),
    "resolved alerts after a place": ("alert_list", (None, PAGE, AFTER)),
    "operations": ("operation_list", (None, PAGE)),
    "operations after one": ("operation_list", (None, PAGE, 150)),
    "operations in a rare state": ("operation_list", ("cancelled", PAGE)),
    "workers": ("worker_list", (10**9, 0, PAGE)),
    "workers after one": ("worker_list", (10**9, 100, PAGE)),
}
STATEMENTS: dict[str, Any] = {
    "alert_list": alert_list, "operation_list": operation_list, "worker_list": worker_list,
}  # fmt: skip


def fill(url: str, first: int, last: int) -> None:
    """Add rows with the numbers `first` to `last` to each table."""
    sqlite, at = is_sqlite(url), START + timedelta(hours=1)
    names = {
        "p": "detent_" if sqlite else "detent.",
        "at": str(to_micros(at, field="at")) if sqlite else f"'{at.isoformat()}'::timestamptz",
    }
    with closing(plain_connection(url)) as connection:
        for text in _FILLS:
            into, _, select = text.partition("\nSELECT")
            numbers = _NUMBERS.format(first=first, last=last)
            connection.execute(f"{numbers} {into}\nSELECT{select}".format(**names))
        connection.commit()
        if not sqlite:
            connection.autocommit = True
            connection.execute("VACUUM ANALYZE")


def work_of(url: str, name: str) -> int:
    """What one page costs."""
    verb, given = LISTS[name]
    with closing(plain_connection(url)) as connection:
        if is_sqlite(url):
            return _steps(connection, verb, given)
        return _pages(connection, STATEMENTS[verb](*given))


def _steps(connection: Any, verb: str, given: tuple[Any, ...]) -> int:
    verbs = SqliteVerbs(SqliteExecutor(connection), TurnableClock(START + timedelta(hours=1)), "test")
    count = [0]

    def step() -> int:
        count[0] += 1
        return 0

    connection.set_progress_handler(step, 10)
    found = getattr(verbs, verb)(*given)
    connection.set_progress_handler(None, 0)
    assert found
    return count[0]


def _pages(connection: Any, wanted: Any) -> int:
    assert connection.execute(wanted.sql, wanted.params).fetchall()  # plans are made
    ((plan,),) = connection.execute(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {wanted.sql}", wanted.params).fetchall()
    connection.rollback()
    found = plan if isinstance(plan, list) else json.loads(plan)
    return int(found[0]["Plan"]["Shared Hit Blocks"] + found[0]["Plan"]["Shared Read Blocks"])


def test_a_page_costs_the_same_whatever_else_is_there(store_url: str) -> None:
    """M2, J14, W3: all of them were read, and the page was cut out in Python."""
    with turnable_store(store_url) as (store, _):
        store.operation_start(NewOperation(id=1_000_000, action="retry", actor="ana"))
    fill(store_url, 1, FEW)
    small = {name: work_of(store_url, name) for name in LISTS}
    fill(store_url, FEW + 1, MANY)
    large = {name: work_of(store_url, name) for name in LISTS}
    dearer = {name: (small[name], large[name]) for name in LISTS if large[name] > 1.5 * small[name] + 60}
    assert dearer == {}
