"""transitions: one line for every change of anything, in order."""

from __future__ import annotations

from itertools import product

import pytest

from detent.lifecycle.library import EXECUTION, JOB
from detent.store.contract import Store
from detent.testing.stores import StoreClock
from tests.contract.jobs.sample_jobs import LEASE, abort, claim_one, commit, enqueue, event, finish, state
from tests.contract.refusals import Untouched

Line = tuple[str | None, str, str]


def lines(store: Store, entity: str, entity_id: object) -> list[Line]:
    return [(line.from_state, line.to_state, line.trigger) for line in store.transitions(entity, str(entity_id))]


def test_the_ordinary_path(store: Store, clock: StoreClock, untouched: Untouched) -> None:
    """E4, L1: read out of the executions: entity, from, to, when, actor, correlation id."""
    job_id = enqueue(store, correlation_id="c-1")
    times = [clock.now(), clock.advance(1)]
    held = claim_one(store)
    times.append(clock.advance(1))
    finish(store, held)
    with untouched():
        found = store.transitions("job", str(job_id))
    assert [(line.from_state, line.to_state, line.trigger, line.actor) for line in found] == [
        (None, "pending", "enqueue", "client"),
        ("pending", "running", "claim", "ana"),
        ("running", "succeeded", "finish", "ana"),
    ]
    assert [line.at for line in found] == times
    assert {line.correlation_id for line in found} == {"c-1"}
    assert {(line.entity, line.entity_id, line.forced) for line in found} == {("job", str(job_id), False)}


def test_an_execution_has_its_own_lines(store: Store) -> None:
    """L5: leased, in progress, committed, done."""
    job_id = enqueue(store)
    held = claim_one(store)
    assert lines(store, "execution", f"{job_id}/1") == [(None, "leased", "lease")]
    store.event_append([event(held)])
    store.job_commit(commit(held))
    finish(store, held)
    assert lines(store, "execution", f"{job_id}/1") == [
        (None, "leased", "lease"),
        ("leased", "in_progress", "start"),
        ("in_progress", "committed", "commit"),
        ("committed", "done", "finish"),
    ]


def test_explicit_moves_stand_between_the_executions(store: Store, clock: StoreClock) -> None:
    """E4: folds are shown step by step, and the order does not depend on the clock."""
    job_id = enqueue(store, attempts_max=2)
    abort(store, claim_one(store), error="e")
    abort(store, claim_one(store), error="e")
    store.job_retry([job_id], "ana")
    held = claim_one(store)
    store.job_cancel([job_id], "bob")
    abort(store, held, "cancelled")
    store.job_retry([job_id], "ana")
    claim_one(store)
    clock.advance(LEASE)
    store.lease_reap(10)
    assert lines(store, "job", job_id) == [
        (None, "pending", "enqueue"),
        ("pending", "running", "claim"),
        ("running", "failed", "fail"),
        ("failed", "pending", "back_off"),
        ("pending", "running", "claim"),
        ("running", "failed", "fail"),
        ("failed", "quarantined", "give_up"),
        ("quarantined", "pending", "retry"),
        ("pending", "running", "claim"),
        ("running", "running", "request_cancel"),
        ("running", "cancelled", "abort"),
        ("cancelled", "pending", "retry"),
        ("pending", "running", "claim"),
        ("running", "pending", "give_back"),
    ]


@pytest.mark.parametrize("outcome", ["error", "crashed", "timed_out", "released", "snoozed", "throttled", "cancelled"])
def test_every_line_is_declared_and_follows_the_one_before(store: Store, outcome: str) -> None:
    """L1, G4: however an attempt ends, the record is a path through the declared lifecycle, and ends in the state."""
    for n, (dead_letter, fatal) in enumerate(product((True, False), repeat=2)):
        job_id = enqueue(store, dead_letter=dead_letter, priority=n)
        abort(store, claim_one(store, limit=1), outcome, fatal=fatal)
        _is_a_path(lines(store, "job", job_id), JOB.pairs, state(store, job_id))
        _is_a_path(lines(store, "execution", f"{job_id}/1"), EXECUTION.pairs, "aborted")


def test_nothing_is_known_of_what_never_was(store: Store) -> None:
    assert store.transitions("job", "999999999") == []
    assert store.transitions("queue", "nowhere") == []


def _is_a_path(found: list[Line], declared: tuple[tuple[str, str], ...], end: str) -> None:
    assert found[0][0] is None
    at = found[0][1]
    for source, target, _ in found[1:]:
        assert source == at
        assert (source, target) in declared
        at = target
    assert at == end
