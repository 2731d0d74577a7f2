"""Workflows on both databases side by side: whatever happens to them, both give the same answers and rows.

There is no third model here: `verify` says whether each database agrees with itself. The numbers of signals differ,
since they come from the ids of each database; their order does not.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import hypothesis.strategies as st
from hypothesis import HealthCheck, example, given, settings
from msgspec.structs import replace

from detent.model.records import Claimed
from detent.model.workflow_records import SignalSent, WaitOn
from detent.store.contract import Store
from tests.contract.batches.sample_batch_runs import broken
from tests.contract.jobs.sample_jobs import LEASE, abort, claim, enqueue, finish, new_job
from tests.contract.workflows.sample_workflows import look, park, record, send, spawn, step
from tests.twin.machine import Side
from tests.twin.sides import OpenSides

SLICE, WHOLE = 4, 200
STEPS = 40

places = st.integers(0, 3)
paths = st.sampled_from(("a", "b", "c"))
names = st.sampled_from(("go", "stop"))
on = st.lists(
    st.one_of(
        st.builds(WaitOn, st.just("signal"), names),
        st.builds(WaitOn, st.just("children"), st.sampled_from(("k1", "k2")), st.booleans()),
    ),
    max_size=3,
    unique=True,
)
times = st.sampled_from((None, None, -1.0, 5.0, 100.0))
steps: st.SearchStrategy[tuple[Any, ...]] = st.one_of(
    st.tuples(st.just("enqueue")),
    st.tuples(st.just("claim")),
    st.tuples(st.just("claim")),
    st.tuples(st.just("record"), places, paths, st.sampled_from(("call", "sleep", "scope"))),
    st.tuples(st.just("begin"), places, paths),
    st.tuples(st.just("look"), places, paths, on, times),
    st.tuples(st.just("park"), places, on, times),
    st.tuples(st.just("continue"), places),
    st.tuples(st.just("spawn"), places, st.sampled_from(("k1", "k2")), st.integers(1, 3), st.booleans()),
    st.tuples(st.just("child"), st.sampled_from(("finish", "fatal", "error", "cancel", "hold"))),
    st.tuples(st.just("send"), places, names, st.sampled_from((None, None, "d"))),
    st.tuples(st.just("send"), places, names, st.sampled_from((None, None, "d"))),
    st.tuples(st.just("end"), places, st.sampled_from(("finish", "error", "fatal", "snoozed"))),
    st.tuples(st.just("move"), places, st.sampled_from(("job_cancel", "job_retry", "job_discard"))),
    st.tuples(st.just("move_child"), places, st.sampled_from(("job_cancel", "job_retry", "job_discard"))),
    st.tuples(st.just("advance"), st.sampled_from((1.0, 10.0, LEASE + 1))),
)


@dataclass
class Hand:
    """What a test has in hand on one side."""

    jobs: list[int] = field(default_factory=list)
    held: list[Claimed] = field(default_factory=list)


def generation(store: Store, job_id: int) -> int:
    """The current one."""
    (row,) = store.workflow_get([job_id])
    return 1 if row is None else row.generation


def told(answer: object) -> str:
    """An answer without the number of a signal."""
    return str(replace(answer, seq=0)) if isinstance(answer, SignalSent) else f"{type(answer).__name__} {answer}"


def do(store: Store, clock: Any, hand: Hand, number: int, step_: tuple[Any, ...]) -> str:
    """One step; what it answered."""
    verb, *given_ = step_
    first = 1_000_000 + number * 100
    match verb:
        case "enqueue":
            hand.jobs.append(enqueue(store, id=first, attempts_max=3))
            return ""
        case "claim":
            found = claim(store, lease_id=first, limit=2)
            hand.held = [*found, *hand.held][:6]
            return str(found)
        case "child":
            return str(
                [ended(store, one, given_[0]) for one in claim(store, lease_id=first, limit=1, tasks=["mail.child"])]
            )
        case "advance":
            clock.advance(given_[0])
            return str([store.lease_reap(10), store.job_promote(10), store.workflow_wake(10)])
        case "send" | "move" | "move_child" if not hand.jobs:
            return ""
        case "send":
            job_id = hand.jobs[given_[0] % len(hand.jobs)]
            return told(send(store, job_id, given_[1], str(number), dedupe=given_[2]))
        case "move":
            return told(getattr(store, given_[1])([hand.jobs[given_[0] % len(hand.jobs)]], "ana", None)[0])
        case "move_child":
            children = [one for job_id in hand.jobs for one in store.child_list(job_id)]
            return (
                told(getattr(store, given_[1])([children[given_[0] % len(children)]], "ana", None)[0])
                if children
                else ""
            )
        case _ if not hand.held:
            return ""
        case _:
            return told(act(store, clock, hand.held[given_[0] % len(hand.held)], first, verb, given_[1:]))


def act(store: Store, clock: Any, held: Claimed, first: int, verb: str, given_: list[Any]) -> object:
    """One step of a holder, who may have lost the job."""
    now = generation(store, held.job_id)
    until = clock.now() + timedelta(seconds=given_[-1]) if verb in ("look", "park") and given_[-1] is not None else None
    match verb:
        case "record":
            return record(store, held, given_[0], kind=given_[1], generation=now, value=str(first))
        case "begin":
            return store.step_begin([step(held, given_[0], generation=now)])[0]
        case "look":
            outcome = step(held, f"w{given_[0]}", kind="signal", generation=now, value=None)
            holds = step(held, f"w{given_[0]}~deadline", kind="deadline", generation=now, value=None)
            several = len(given_[1]) > 1
            return look(store, held, *given_[1], outcome=outcome, holds=holds, until=until, chooses=several)
        case "park":
            return park(store, held, *given_[0], until=until, generation=now)
        case "continue":
            return store.workflow_continue(held.job_id, held.attempt, "{}", "ana")
        case "spawn":
            path, count, detached = given_
            made = [new_job(store, id=first + n, task="mail.child", attempts_max=1) for n in range(count)]
            of = step(held, path, kind="spawn", generation=now)
            return spawn(store, held, count, step=of, first_id=first, jobs=made, detached=detached)
        case _:
            return ended(store, held, given_[0])


def ended(store: Store, one: Claimed, how: str) -> object:
    """End an attempt, or leave it to its lease."""
    match how:
        case "hold":
            return ""
        case "finish":
            return finish(store, one)
        case "cancel":
            store.job_cancel([one.job_id], "ana")
            return abort(store, one, "cancelled")
        case "snoozed":
            return abort(store, one, "snoozed", delay=3.0)
        case _:
            return abort(store, one, error="boom", fatal=how == "fatal")


def seen(store: Store, jobs: list[int]) -> list[Any]:
    """Everything that can be read of these workflows."""
    found: list[Any] = [store.wait_list().rows, store.workflow_versions()]
    for job_id in jobs:
        children = store.child_list(job_id)
        found += [store.workflow_get([job_id]), store.job_get([job_id, *children]), store.job_executions(job_id)]
        for number in range(1, generation(store, job_id) + 1):
            rows = store.step_list(job_id, generation=number).rows
            found.append([replace(row, signal_seq=row.signal_seq and 0) for row in rows])
        found += [store.child_groups(job_id), [replace(row, seq=0) for row in store.signal_list(job_id)]]
    return found


def compare(sides: list[Side], taken: list[tuple[Any, ...]]) -> None:
    """Take these steps on both sides."""
    hands = [Hand() for _ in sides]
    for number, one in enumerate(taken):
        answers = [do(side.store, side.clock, hand, number, one) for side, hand in zip(sides, hands, strict=True)]
        assert answers[0] == answers[1], one
    left, right = (seen(side.store, hand.jobs) for side, hand in zip(sides, hands, strict=True))
    assert left == right
    assert [broken(side.store) for side in sides] == [[], []]


def test_both_say_the_same_of_workflows(open_sides: OpenSides, whole: bool) -> None:
    """G3, G4: steps, waits, signals and children, by holders and by those who were."""
    waits = [WaitOn("children", "k1", True), WaitOn("signal", "go")]

    @example(
        [
            *(("spawn", 0, "k1", 2, False), ("park", 0, waits, None), ("child", "fatal"), ("child", "finish")),
            *(("move_child", 0, "job_retry"), ("child", "finish"), ("claim",), ("look", 0, "a", waits, 5.0)),
            *(
                ("send", 0, "go", "d"),
                ("send", 0, "go", "d"),
                ("look", 0, "b", waits, None),
                ("continue", 0),
                ("claim",),
            ),
            *(
                ("record", 0, "a", "call"),
                ("end", 0, "error"),
                ("claim",),
                ("end", 0, "fatal"),
                ("move", 0, "job_retry"),
            ),
        ]
    )
    @given(st.lists(steps, min_size=STEPS // 2, max_size=STEPS))
    @settings(
        max_examples=WHOLE if whole else SLICE,
        deadline=None,
        derandomize=not whole,
        suppress_health_check=list(HealthCheck),
    )
    def both(taken: list[tuple[Any, ...]]) -> None:
        with open_sides() as sides:
            compare(sides, [("enqueue",), ("enqueue",), ("claim",), *taken])

    both()
