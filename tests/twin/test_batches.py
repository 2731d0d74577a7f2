"""Batch runs on both databases side by side: whatever happens to their jobs, both give the same answers and rows.

There is no third model here: `verify` says whether each database agrees with itself.
"""

from __future__ import annotations

from datetime import timedelta
from itertools import count
from typing import Any

import hypothesis.strategies as st
from hypothesis import HealthCheck, example, given, settings

from detent.model.records import Abort, Claimed, Finish
from detent.store.contract import Store
from tests.contract.batches import sample_batch_runs as batches
from tests.contract.jobs.sample_jobs import LEASE, claim
from tests.twin.machine import Side
from tests.twin.sides import OpenSides

SLICE, WHOLE = 4, 150
STEPS = 25

places = st.integers(0, 2)
refs = st.lists(st.sampled_from("abcd"), min_size=1, max_size=4, unique=True)
some = st.sets(st.sampled_from("abcd"), max_size=2)
steps: st.SearchStrategy[tuple[Any, ...]] = st.one_of(
    st.tuples(st.just("create"), refs, some, some),
    st.tuples(st.just("act"), places, st.sampled_from(["apply", "apply", "retry_failed", "roll_back"])),
    st.tuples(st.just("cancel"), places),
    st.tuples(st.just("drive"), st.sampled_from([1, 2, 100])),
    st.tuples(
        st.just("work"),
        st.sampled_from([batches.APPLY, batches.APPLY, batches.REVERT, batches.DRIVE]),
        st.sampled_from(["finish", "finish", "fatal", "error", "cancelled", "snoozed", "hold"]),
        st.sampled_from([1, 2, 100]),
    ),
    st.tuples(
        st.just("move"),
        st.sampled_from(["job_retry", "job_retry", "job_cancel", "job_discard", "force"]),
        *(places, places, st.booleans()),
    ),
    st.tuples(st.just("advance"), st.sampled_from([1.0, LEASE + 1])),
)


def job_of(store: Store, run_id: int, place: int, *, revert: bool) -> int | None:
    """The job that applies a target of a run, or the one that reverts it."""
    found = store.target_list(run_id)
    if not found:
        return None
    target = found[place % len(found)]
    return target.revert_job_id if revert else target.apply_job_id


def do(store: Store, clock: Any, runs: list[int], step: tuple[Any, ...]) -> str:
    """One step; what it answered."""
    verb, *given = step
    match verb:
        case "create":
            row = batches.previewed_run(store, given[0], same=given[1], bad=given[2])
            runs.append(row.id)
            return str(row)
        case "act":
            return str(batches.act(store, runs[given[0] % len(runs)], given[1])) if runs else ""
        case "cancel" if runs:
            return str(batches.cancel(store, runs[given[0] % len(runs)]))
        case "drive":
            try:
                return str(batches.drive(store, limit=given[0]))
            except (AssertionError, ValueError) as refused:  # there is no driver, or its action is over
                return str(refused)
        case "work":
            return str([ended(store, one, given[1]) for one in claim(store, tasks=[given[0]], limit=given[2])])
        case "move":
            name, place, target, revert = given
            job_id = job_of(store, runs[place % len(runs)], target, revert=revert) if runs else None
            if job_id is None:
                return ""
            if name == "force":
                return str(store.job_force(job_id, "succeeded", "ana", "it was done by hand"))
            return str(getattr(store, name)([job_id], "ana", None))
        case "cancel":
            return ""
        case _:
            clock.advance(given[0])
            return str([store.lease_reap(10), store.job_promote(10)])


def ended(store: Store, one: Claimed, how: str) -> str:
    """End an attempt, or leave it to its lease."""
    match how:
        case "hold":
            return ""
        case "finish":
            return str(store.job_finish([Finish(one.job_id, one.attempt)], "ana"))
        case "snoozed" | "cancelled":
            return str(store.job_abort([Abort(job_id=one.job_id, attempt=one.attempt, outcome=how, delay=0.5)], "ana"))
        case _:
            failed = Abort(job_id=one.job_id, attempt=one.attempt, outcome="error", error="boom", fatal=how == "fatal")
            return str(store.job_abort([failed], "ana"))


def seen(store: Store, runs: list[int]) -> list[Any]:
    """Everything that can be read of these runs."""
    found: list[Any] = []
    for run_id in runs:
        targets = store.target_list(run_id)
        jobs = sorted({one for target in targets for one in (target.apply_job_id, target.revert_job_id) if one})
        found += [store.batch_get(run_id), targets, store.job_get(jobs)]
        found += [store.transitions("batch_run", str(run_id))]
        found += [store.transitions("target", f"{run_id}/{target.n}") for target in targets]
    since = store.now() - timedelta(days=1)
    return [*found, store.figures(since), store.batch_figures(since)]


def compare(sides: list[Side], taken: list[tuple[Any, ...]]) -> None:
    """Take these steps on both sides."""
    runs: list[list[int]] = [[] for _ in sides]
    for number, step in enumerate(taken):
        answers = []
        for side, made in zip(sides, runs, strict=True):
            batches.NUMBERS = count(1_000_000_000 + number * 1_000_000, 1000)
            answers.append(do(side.store, side.clock, made, step))
        assert answers[0] == answers[1], step
    left, right = (seen(side.store, made) for side, made in zip(sides, runs, strict=True))
    assert left == right
    assert [batches.broken(side.store) for side in sides] == [[], []]


def test_both_say_the_same_of_batch_runs(open_sides: OpenSides, whole: bool) -> None:
    """B1, B3, B4, G4: whatever is done to the jobs of targets, in whatever order."""

    @example([("work", batches.APPLY, "finish", 100), ("act", 0, "roll_back"), ("move", "job_retry", 0, 0, False)])
    @given(st.lists(steps, min_size=STEPS // 2, max_size=STEPS))
    @settings(
        max_examples=WHOLE if whole else SLICE,
        deadline=None,
        derandomize=not whole,
        suppress_health_check=list(HealthCheck),
    )
    def both(taken: list[tuple[Any, ...]]) -> None:
        with open_sides() as sides:
            compare(sides, [("create", ["a", "b", "c"], set(), set()), ("act", 0, "apply"), ("drive", 100), *taken])

    numbers = batches.NUMBERS
    try:
        both()
    finally:
        batches.NUMBERS = numbers
