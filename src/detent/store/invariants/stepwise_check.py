"""The walk: all invariants, checked for a part of the record at a time, so that each step is short.

A walk begins with the schema. Then it goes through the jobs from the newest to the oldest, through the rows of the
queue, the slots of limits, and the batch runs. Only `verify` finds two rows with one key if the key, lane or lease
belongs to no job. That takes a missing unique index, which the walk does find.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, assert_never

from detent.errors import DatabaseError
from detent.model.records import Violation
from detent.model.service_records import WalkPlace, WalkStep
from detent.store.invariants import Dialect, can_go_on, load, unchecked
from detent.store.invariants.partial_tables import (
    JOBS_LOW,
    QUEUE_ROWS,
    RUN_NEXT,
    SLOTS,
    of_jobs,
    of_queue_rows,
    of_run,
    of_slots,
)

__all__ = ["BY_QUEUE_ROW", "BY_RUN", "BY_SLOT", "UNWALKED", "WHOLE", "step"]

WHOLE = frozenset(
    {
        "completed_run_is_consolidated",
        "constraints_are_in_place",
        "database_has_an_identity",
        "definitions_are_in_place",
        "guards_are_in_place",
        "horizons_are_past",
        "ids_are_ahead",
        "run_counters_equal_parts",
        "run_state_equals_record",
        "times_are_near",
        "watermark_stands_on_its_run",
    }
)
"""Checked as a whole: they read the schema and runs, and cost the same however many jobs there are."""

UNWALKED = frozenset(
    {
        *(
            "checks_hold",
            "child_counts_equal_children",
            "graph_follows_its_nodes",
            "graph_has_its_nodes",
            "finished_counts_equal_jobs",
            "lists_find_every_job",
            "rates_equal_figures",
        ),
        *("storage_is_sound", "totals_equal_counts", "undos_follow_their_steps"),
    }
)
"""Left to `verify`: they read every row or page of every table."""

BY_RUN = frozenset({"batch_counts_equal_targets", "batch_state_equals_record", "batch_times_are_in_order"})
"""Checked for one batch run at a time, with all its targets."""

BY_QUEUE_ROW = frozenset({"no_row_is_orphaned", "pending_is_queued_once"})
"""Checked again for the rows of the queue, to find those to which no job leads."""

BY_SLOT = frozenset({"limit_slots_are_current"})
"""Checked for some slots of limits at a time: no index leads from a job to its slots."""

Listed = Callable[[Sequence[int]], Any]
Rows = Callable[[str, Mapping[str, Any]], Sequence[Sequence[Any]]]

_AFTER = {
    "schema": WalkPlace(part="jobs"),
    "jobs": WalkPlace(part="queue"),
    "queue": WalkPlace(part="slots"),
    "slots": WalkPlace(part="runs"),
    "runs": None,
}
_LOWEST = -(2**63)
_HIGHEST = 2**63 - 1


def step(
    dialect: Dialect,
    rows: Rows,
    place: WalkPlace,
    rows_max: int,
    *,
    before_all: Any,
    listed: Listed,
    schema: bool = True,
) -> WalkStep:
    """Check the invariants for at most `rows_max` jobs, queue rows or slots, all through `rows`, on one snapshot.

    `before_all` is a time before that of every row, in the database's own type, and `listed` turns a list of numbers
    into a parameter. Without `schema`, the schema is not compared with that of this release.
    """
    try:
        if place.part == "schema":
            return _whole(dialect, rows, schema=schema)
        return _step(dialect, rows, place, rows_max, before_all, listed)
    except DatabaseError as error:
        if not can_go_on(error):
            raise
        # The table that it walks through is damaged: the walk goes on after it.
        return WalkStep((unchecked(f"walk along {place.part}", error),), _AFTER[place.part])


def _step(dialect: Dialect, rows: Rows, place: WalkPlace, rows_max: int, before_all: Any, listed: Listed) -> WalkStep:
    match place.part:
        case "schema":
            return _whole(dialect, rows, schema=True)
        case "jobs":
            return _jobs(dialect, rows, place, rows_max)
        case "queue":
            return _queue(dialect, rows, place, rows_max, before_all, listed)
        case "slots":
            return _slots(dialect, rows, place, rows_max, listed)
        case "runs":
            return _runs(dialect, rows, place)
        case _:
            assert_never(place.part)


def _whole(dialect: Dialect, rows: Rows, *, schema: bool) -> WalkStep:
    return WalkStep(_violations(dialect, rows, WHOLE, schema=schema), WalkPlace(part="jobs"))


def _jobs(dialect: Dialect, rows: Rows, place: WalkPlace, rows_max: int) -> WalkStep:
    high = _HIGHEST if place.below is None else place.below - 1
    lowest = rows(JOBS_LOW[dialect], {"high": high, "skip": rows_max - 1})
    # The last step has no lower bound: rows about deleted jobs may have ids below the oldest job's.
    low = int(lowest[0][0]) if lowest else _LOWEST
    others = {one.name for one in load(dialect)} - WHOLE - BY_RUN - BY_SLOT - UNWALKED
    found = _violations(dialect, rows, others, of_jobs, {"low": low, "high": high})
    return WalkStep(found, WalkPlace(part="jobs", below=low) if lowest else WalkPlace(part="queue"))


def _queue(dialect: Dialect, rows: Rows, place: WalkPlace, rows_max: int, before_all: Any, listed: Listed) -> WalkStep:
    lane, at, job = place.after or (-1, before_all, _LOWEST)
    params = {"lane": lane, "at": at, "job": job, "rows": rows_max}
    queued = rows(QUEUE_ROWS[dialect], params)
    if not queued:
        return WalkStep((), WalkPlace(part="slots"))
    params |= {"ids": listed(sorted(row[2] for row in queued)), "lanes": listed(sorted({row[0] for row in queued}))}
    found = _violations(dialect, rows, BY_QUEUE_ROW, of_queue_rows, params)
    is_last = len(queued) < rows_max
    lane, at, job = queued[-1]
    return WalkStep(found, WalkPlace(part="slots") if is_last else WalkPlace(part="queue", after=(lane, at, job)))


def _slots(dialect: Dialect, rows: Rows, place: WalkPlace, rows_max: int, listed: Listed) -> WalkStep:
    key, job = place.after or ("", _LOWEST)
    params = {"key": key, "job": job, "rows": rows_max}
    slots = rows(SLOTS[dialect], params)
    if not slots:
        return WalkStep((), WalkPlace(part="runs"))
    params["ids"] = listed(sorted({row[1] for row in slots}))
    found = _violations(dialect, rows, BY_SLOT, of_slots, params)
    is_last = len(slots) < rows_max
    return WalkStep(found, WalkPlace(part="runs") if is_last else WalkPlace(part="slots", after=tuple(slots[-1])))


def _runs(dialect: Dialect, rows: Rows, place: WalkPlace) -> WalkStep:
    ((run,),) = rows(RUN_NEXT[dialect], {"below": _HIGHEST if place.below is None else place.below})
    if run is None:
        return WalkStep((), None)
    found = _violations(dialect, rows, BY_RUN, of_run, {"run": run})
    return WalkStep(found, WalkPlace(part="runs", below=run))


def _violations(
    dialect: Dialect,
    rows: Rows,
    names: Collection[str],
    narrowed: Callable[[Dialect, str], str] | None = None,
    params: Mapping[str, Any] | None = None,
    *,
    schema: bool = True,
) -> tuple[Violation, ...]:
    """Return the rows that break the invariants of these names, in the tables that `narrowed` leaves."""
    return tuple(
        violation
        for one in load(dialect, schema=schema)
        if one.name in names
        for violation in _check(one.name, rows, narrowed(dialect, one.sql) if narrowed else one.sql, params or {})
    )


def _check(name: str, rows: Rows, sql: str, params: Mapping[str, Any]) -> list[Violation]:
    """Return the rows that break an invariant; if it cannot be checked, that is the violation."""
    try:
        return [Violation(name, *(str(part) for part in row)) for row in rows(sql, params)]
    except DatabaseError as error:
        if not can_go_on(error):
            raise
        return [unchecked(name, error)]
