"""The invariants, a part of the record at a time: each step is short, however large the record is.

A walk begins with the schema, goes along the jobs from the newest to the oldest, then along the rows of the queue and
the slots of limits, and then from batch run to batch run. Judged job by job is every invariant but those of the schema.
One gap is left to `verify`: two rows of a key that is kept, or of a lane or lease that no job needs. That takes a
unique index that is gone, and this the walk finds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, assert_never

from detent.errors import DatabaseError
from detent.model.records import Violation
from detent.model.service_records import WalkPlace, WalkStep
from detent.store.invariants import Dialect, can_go_on, load, unchecked
from detent.store.invariants.slices import JOBS_LOW, PLACES, RUN_NEXT, SLOTS, of_jobs, of_places, of_run, of_slots

__all__ = ["BY_PLACE", "BY_RUN", "BY_SLOT", "UNWALKED", "WHOLE", "step"]

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
"""Not judged by job: they look at the schema and at runs, and cost the same however many jobs there are."""

UNWALKED = frozenset({"checks_hold", "finished_counts_equal_jobs", "lists_find_every_job", "storage_is_sound"})
"""Read every row or page of every table, also of those that are not kept by job, so they are left to `verify`."""

BY_RUN = frozenset({"batch_counts_equal_targets", "batch_state_equals_record", "batch_times_are_in_order"})
"""Judged for one batch run at a time, with all its targets."""

BY_PLACE = frozenset({"no_row_is_orphaned", "pending_is_queued_once"})
"""Judged once more for the rows of the queue, where those stand that no job leads to."""

BY_SLOT = frozenset({"limit_slots_are_current"})
"""Judged for some slots of limits at a time: no index leads from a job to its slots."""

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
    """The invariants for at most `rows_max` jobs, or rows of the queue. All of it through `rows`, on one snapshot.

    `before_all` is a time before that of every row, as the database keeps times, and `listed` gives numbers as it
    takes them. Without `schema`, the schema is not compared with that of this release."""
    try:
        if place.part == "schema":
            return _whole(dialect, rows, schema=schema)
        return _step(dialect, rows, place, rows_max, before_all, listed)
    except DatabaseError as error:
        if not can_go_on(error):
            raise
        # What it walks along is damaged: the walk goes on behind it.
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
    found = [
        violation
        for one in load(dialect, schema=schema)
        if one.name in WHOLE
        for violation in _check(one.name, rows, one.sql, {})
    ]
    return WalkStep(tuple(found), WalkPlace(part="jobs"))


def _jobs(dialect: Dialect, rows: Rows, place: WalkPlace, rows_max: int) -> WalkStep:
    high = _HIGHEST if place.below is None else place.below - 1
    lowest = rows(JOBS_LOW[dialect], {"high": high, "skip": rows_max - 1})
    # The last step goes down to the end: what speaks of jobs that are gone may lie below the oldest.
    low = int(lowest[0][0]) if lowest else _LOWEST
    found = [
        violation
        for one in load(dialect)
        if one.name not in WHOLE | BY_RUN | BY_SLOT | UNWALKED
        for violation in _check(one.name, rows, of_jobs(dialect, one.sql), {"low": low, "high": high})
    ]
    return WalkStep(tuple(found), WalkPlace(part="jobs", below=low) if lowest else WalkPlace(part="queue"))


def _queue(dialect: Dialect, rows: Rows, place: WalkPlace, rows_max: int, before_all: Any, listed: Listed) -> WalkStep:
    lane, at, job = place.after or (-1, before_all, _LOWEST)
    params = {"lane": lane, "at": at, "job": job, "rows": rows_max}
    places = rows(PLACES[dialect], params)
    if not places:
        return WalkStep((), WalkPlace(part="slots"))
    params |= {"ids": listed(sorted(row[2] for row in places)), "lanes": listed(sorted({row[0] for row in places}))}
    found = [
        violation
        for one in load(dialect)
        if one.name in BY_PLACE
        for violation in _check(one.name, rows, of_places(dialect, one.sql), params)
    ]
    is_last = len(places) < rows_max
    lane, at, job = places[-1]
    following = WalkPlace(part="slots") if is_last else WalkPlace(part="queue", after=(lane, at, job))
    return WalkStep(tuple(found), following)


def _slots(dialect: Dialect, rows: Rows, place: WalkPlace, rows_max: int, listed: Listed) -> WalkStep:
    key, job = place.after or ("", _LOWEST)
    params = {"key": key, "job": job, "rows": rows_max}
    slots = rows(SLOTS[dialect], params)
    if not slots:
        return WalkStep((), WalkPlace(part="runs"))
    params["ids"] = listed(sorted({row[1] for row in slots}))
    found = [
        violation
        for one in load(dialect)
        if one.name in BY_SLOT
        for violation in _check(one.name, rows, of_slots(dialect, one.sql), params)
    ]
    is_last = len(slots) < rows_max
    return WalkStep(
        tuple(found), WalkPlace(part="runs") if is_last else WalkPlace(part="slots", after=tuple(slots[-1]))
    )


def _runs(dialect: Dialect, rows: Rows, place: WalkPlace) -> WalkStep:
    ((run,),) = rows(RUN_NEXT[dialect], {"below": _HIGHEST if place.below is None else place.below})
    if run is None:
        return WalkStep((), None)
    found = [
        violation
        for one in load(dialect)
        if one.name in BY_RUN
        for violation in _check(one.name, rows, of_run(dialect, one.sql), {"run": run})
    ]
    return WalkStep(tuple(found), WalkPlace(part="runs", below=run))


def _check(name: str, rows: Rows, sql: str, params: Mapping[str, Any]) -> list[Violation]:
    """Return the rows that break an invariant; if it cannot be checked, that is the violation."""
    try:
        return [Violation(name, *(str(part) for part in row)) for row in rows(sql, params)]
    except DatabaseError as error:
        if not can_go_on(error):
            raise
        return [unchecked(name, error)]
