"""What the figures have reached: without that, a clean table would prove nothing. `required_points` says what they must
reach.

    tally.covered.update(transitions_of(url))            # at the end, from the record in the database
    tally.covered.update(error_points(answers))          # errors that were raised or given as answers
    with errors_counted() as covered: ...                # every error that is made in this process meanwhile
    tally.covered.update(fault_points("lost answer"))

A point is a text such as "transition job: pending -> running (claim)", "error LeaseLost", "sqlstate 40001",
"sqlite SQLITE_BUSY" or "fault lost answer".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from typing import Any

from detent.errors import DetentError
from detent.lifecycle.definition import Lifecycle, Transition
from detent.store.sqlite.store import SqliteStore
from detent.testing.stores import is_sqlite, plain_connection

__all__ = [
    "error_points",
    "errors_counted",
    "fault_points",
    "transition_point",
    "transitions_of",
]

Rows = Callable[[str], Iterable[Any]]
_MOVES = """
SELECT entity, from_state, to_state, trigger, count(*) FROM {transition}
 WHERE from_state IS NOT NULL GROUP BY entity, from_state, to_state, trigger
"""
_PARTITIONS = """
SELECT 'partition', m.from_state, m.to_state, m.trigger, count(*)
  FROM (SELECT 'pending' AS from_state, 'in_progress' AS to_state, 'begin' AS trigger
          FROM {partition} WHERE started_at IS NOT NULL
        UNION ALL
        SELECT 'in_progress', 'fetching_pages', 'store_page' FROM {partition} WHERE pages > 0
        UNION ALL
        SELECT 'fetching_pages', 'completed', 'complete' FROM {partition} WHERE state = 'completed'
        UNION ALL
        SELECT CASE WHEN pages > 0 THEN 'fetching_pages' WHEN started_at IS NULL THEN 'pending' ELSE 'in_progress' END,
               'failed', 'fail' FROM {partition} WHERE state = 'failed'
        UNION ALL
        SELECT 'failed', CASE WHEN p.pages > 0 THEN 'fetching_pages' ELSE 'pending' END, 'retry'
          FROM {partition} p JOIN {transition_log} l ON l.job_id = p.job_id
         WHERE l.to_state = 'pending' AND (p.pages = 0 OR p.paged_at <= l.at)) m
 GROUP BY m.from_state, m.to_state, m.trigger
"""
"""A lower bound: a partition has no record of its own. A retry counts if no page was stored after it."""
_OPS_RUNS = """
SELECT 'ops_run', m.from_state, m.to_state, m.trigger, count(*)
  FROM (SELECT 'queued' AS from_state, 'claimed' AS to_state, 'claim' AS trigger
          FROM {ops_run} r JOIN {transition} t ON t.job_id = r.job_id
         WHERE t.entity = 'job' AND t.trigger = 'claim'
        UNION ALL
        SELECT 'claimed', 'running', 'begin' FROM {ops_run} r JOIN {transition} t ON t.job_id = r.job_id
         WHERE t.entity = 'execution' AND t.trigger = 'start'
        UNION ALL
        SELECT 'running', 'success', 'succeed' FROM {ops_run} r JOIN {execution} e ON e.job_id = r.job_id
         WHERE e.next_state = 'succeeded'
        UNION ALL
        SELECT 'running', 'failed', CASE WHEN e.outcome = 'expired' THEN 'stall' ELSE 'fail' END
          FROM {ops_run} r JOIN {execution} e ON e.job_id = r.job_id WHERE e.next_state = 'failed'
        UNION ALL
        SELECT CASE WHEN e.started_at IS NULL THEN 'claimed' ELSE 'running' END, 'cancelled',
               CASE WHEN e.started_at IS NULL THEN 'go_stale' ELSE 'cancel' END
          FROM {ops_run} r JOIN {execution} e ON e.job_id = r.job_id WHERE e.next_state = 'cancelled'
        UNION ALL
        SELECT 'queued', 'cancelled', 'cancel' FROM {ops_run} r JOIN {transition_log} l ON l.job_id = r.job_id
         WHERE l.from_state = 'pending' AND l.to_state = 'cancelled') m
 GROUP BY m.from_state, m.to_state, m.trigger
"""
_TABLES = ("transition", "transition_log", "execution", "partition", "ops_run")


def transition_point(lifecycle: Lifecycle, transition: Transition) -> str:
    """Return the point of a declared transition."""
    return _point(lifecycle.name, transition.source, transition.target, transition.trigger)


def transitions_of(database: Any) -> Counter[str]:
    """Return how often each transition is on record in a database.

    `database` is its URL, a connection of sqlite3 or psycopg, a `SqliteStore`, or a function that runs a SELECT on
    SQLite and returns its rows. Jobs that were pruned have taken their transitions with them.
    """
    if isinstance(database, str):
        with closing(plain_connection(database)) as connection:
            return _moves(
                lambda sql: connection.execute(sql).fetchall(), "detent_" if is_sqlite(database) else "detent."
            )
    if isinstance(database, SqliteStore):
        with database._file.reading() as connection:
            return _moves(lambda sql: connection.execute(sql).fetchall(), "detent_")
    if not hasattr(database, "execute"):
        return _moves(database, "detent_")
    prefix = "detent." if type(database).__module__.startswith("psycopg") else "detent_"
    return _moves(lambda sql: database.execute(sql).fetchall(), prefix)


def _moves(rows: Rows, prefix: str) -> Counter[str]:
    names = {name: f"{prefix}{name}" for name in _TABLES}
    found: Counter[str] = Counter()
    for sql in (_MOVES, _PARTITIONS, _OPS_RUNS):
        for entity, source, target, trigger, count in rows(sql.format(**names)):
            found[_point(entity, source, target, trigger)] += int(count)
    return found


def _point(entity: str, source: str, target: str, trigger: str) -> str:
    return f"transition {entity}: {source} -> {target} ({trigger})"


def error_points(*found: Any) -> Counter[str]:
    """Return the points of errors, their causes included. Lists are searched; whatever is no error is ignored."""
    points: Counter[str] = Counter()
    for one in found:
        if isinstance(one, list | tuple):
            points.update(error_points(*one))
        elif isinstance(one, BaseException):
            points.update(_points_of(one, set()))
    return points


def _points_of(error: BaseException, known: set[int]) -> Iterator[str]:
    if id(error) in known:
        return
    known.add(id(error))
    if isinstance(error, DetentError):
        yield f"error {type(error).__name__}"
    if code := getattr(error, "sqlstate", None):
        yield f"sqlstate {code}"
    if name := getattr(error, "sqlite_errorname", None):
        yield f"sqlite {name}"
    for other in (error.__cause__, error.__context__):
        if other is not None:
            yield from _points_of(other, known)


@contextmanager
def errors_counted() -> Iterator[Counter[str]]:
    """Count every error of Detent that is made in this process meanwhile, whether it is raised, given as an answer or
    handled inside. Errors that come from other processes count when they are unpickled."""
    points: Counter[str] = Counter()

    def counted(kind: type[DetentError], *args: Any, **_: Any) -> DetentError:
        points[f"error {kind.__name__}"] += 1
        # Not that of Exception: WaitTimeout is a TimeoutError too, which has one of its own.
        made: DetentError = super(DetentError, kind).__new__(kind, *args)
        return made

    before = DetentError.__dict__.get("__new__")
    setattr(DetentError, "__new__", counted)  # noqa: B010 - mypy refuses the assignment
    try:
        yield points
    finally:
        if before is None:
            del DetentError.__new__
        else:
            setattr(DetentError, "__new__", before)  # noqa: B010


def fault_points(*names: str) -> Counter[str]:
    """Return the points of faults that were injected."""
    return Counter(f"fault {name}" for name in names)
