"""The fence: a worker that has lost its lease is powerless, whatever it calls and however it lost it."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from detent.errors import AlreadyCommitted, DetentError, LeaseLost
from detent.model.limit_records import Charge
from detent.model.records import Claimed, Finished, Renewal
from detent.store.batches.contract import BatchVerbs
from detent.store.contract import CATALOGUE, Store
from detent.store.pipelines.contract import PipelineVerbs
from detent.store.verb import catalogue_of
from detent.testing.stores import StoreClock
from tests.contract.jobs.sample_jobs import LEASE, abort, claim_one, commit, enqueue, event, finish, new_job
from tests.contract.refusals import Untouched, refused
from tests.contract.workflows.sample_workflows import look, park, record, signal, spawn, step

ABSENT = 10**12
Loss = Callable[[Store, StoreClock, Claimed], Claimed]
Call = Callable[[Store, Claimed], object]


def expired(store: Store, clock: StoreClock, held: Claimed) -> Claimed:
    clock.advance(LEASE)
    return held


def reaped(store: Store, clock: StoreClock, held: Claimed) -> Claimed:
    clock.advance(LEASE + 1)
    assert store.lease_reap(10).aborted == (held.job_id,)
    return held


def reclaimed(store: Store, clock: StoreClock, held: Claimed) -> Claimed:
    reaped(store, clock, held)
    assert claim_one(store, worker="bob").job_id == held.job_id
    return held


def cancelled(store: Store, clock: StoreClock, held: Claimed) -> Claimed:
    store.job_cancel([held.job_id], "ana")
    return reaped(store, clock, held)


def quarantined(store: Store, clock: StoreClock, held: Claimed) -> Claimed:
    reaped(store, clock, held)
    assert abort(store, claim_one(store, worker="bob"), fatal=True).state == "quarantined"
    return held


def finished(store: Store, clock: StoreClock, held: Claimed) -> Claimed:
    reaped(store, clock, held)
    assert finish(store, claim_one(store, worker="bob")) == Finished(held.job_id, 2)
    return held


def committed_by_another(store: Store, clock: StoreClock, held: Claimed) -> Claimed:
    reaped(store, clock, held)
    store.job_commit(commit(claim_one(store, worker="bob")))
    return held


def unknown(store: Store, clock: StoreClock, held: Claimed) -> Claimed:
    return msgspec.structs.replace(held, job_id=ABSENT)


def ahead(store: Store, clock: StoreClock, held: Claimed) -> Claimed:
    return msgspec.structs.replace(held, attempt=held.attempt + 1)


FOUND: dict[Loss, str] = {
    expired: "its lease has expired",
    reaped: "the job is pending",
    reclaimed: "attempt 2 is current",
    cancelled: "the job is cancelled",
    quarantined: "the job is quarantined",
    finished: "the job is succeeded",
    committed_by_another: "attempt 2 is current",
    unknown: "no such job",
    ahead: "attempt 1 is current",
}


def a_commit_block(store: Store, held: Claimed) -> object:
    try:
        with store.commit_block(held.job_id, held.attempt):
            return "entered"
    except DetentError as error:
        return error


CALLS: dict[str, Call] = {
    "job_start": lambda store, held: store.job_start([(held.job_id, held.attempt)])[0],
    "event_append": lambda store, held: store.event_append([event(held, "still here")])[0],
    "job_commit": lambda store, held: store.job_commit(commit(held, result='"mine"', intents=(new_job(store, id=5),))),
    "effect_begin": lambda store, held: store.effect_begin(held.job_id, held.attempt, "marker"),
    "job_finish": lambda store, held: finish(store, held, '"mine"'),
    "job_abort": lambda store, held: abort(store, held, "released"),
    "limit_charge": lambda store, held: store.limit_charge([Charge(held.job_id, held.attempt, 2.0)])[0],
    "commit_block": a_commit_block,
    "workflow_load": lambda store, held: store.workflow_load(held.job_id, held.attempt),
    "workflow_load_many": lambda store, held: store.workflow_load_many([(held.job_id, held.attempt)])[0],
    "step_begin": lambda store, held: store.step_begin([step(held)])[0],
    "step_record": lambda store, held: record(store, held),
    "wait_look": lambda store, held: look(store, held, signal(), steps=(step(held),)),
    "workflow_park": lambda store, held: park(store, held, signal()),
    "workflow_continue": lambda store, held: store.workflow_continue(held.job_id, held.attempt, "{}", "ana"),
    "undo_begin": lambda store, held: store.undo_begin(held.job_id, held.attempt, "no parcel"),
    "workflow_spawn": lambda store, held: spawn(store, held, 1, first_id=5),
}

# The effect has happened, and these say so: whether the caller still holds it matters no more.
SAY_COMMITTED = {"job_commit", "commit_block", "effect_begin"}


@pytest.mark.parametrize("loss", FOUND, ids=lambda loss: loss.__name__)
def test_a_lost_lease_is_powerless(store: Store, clock: StoreClock, untouched: Untouched, loss: Loss) -> None:
    """J5, C4, G3: every verb of the holder is refused with a typed error, and changes no row."""
    enqueue(store, id=store.ids_reserve(10) + 9)
    held = loss(store, clock, claim_one(store))
    for name, call in CALLS.items():
        with untouched():
            answer = call(store, held)
        if loss in (finished, committed_by_another) and name in SAY_COMMITTED:
            refused(answer, AlreadyCommitted, job_id=held.job_id, attempt=2)
        else:
            refused(answer, LeaseLost, job_id=held.job_id, attempt=held.attempt, found=FOUND[loss])


def test_the_fence_leaves_no_verb_out() -> None:
    """G3: every verb that only the holder may call is tried above, those of runs in their own modules. Recovery is
    anyone's."""
    of_runs = catalogue_of(BatchVerbs).keys() | catalogue_of(PipelineVerbs).keys()
    fenced = {
        verb.name
        for verb in CATALOGUE.values()
        if LeaseLost in verb.refuses and not verb.name.startswith("ops_") and verb.name not in of_runs
    }
    assert fenced == set(CALLS) - {"commit_block"} | {"job_recover"}


@pytest.mark.parametrize("loss", [reaped, reclaimed, cancelled, finished], ids=lambda loss: loss.__name__)
def test_a_reaped_lease_is_not_renewed(store: Store, clock: StoreClock, untouched: Untouched, loss: Loss) -> None:
    """G3: for renew, lost means reaped."""
    job_id = enqueue(store)
    lease_id = store.ids_reserve(1)
    loss(store, clock, claim_one(store, lease_id=lease_id))
    with untouched():
        assert store.lease_renew([lease_id], LEASE, {job_id: 0.5}) == [Renewal(lease_id, False)]


def test_an_expired_lease_is_renewed_and_holds_again(store: Store, clock: StoreClock) -> None:
    """J5: until somebody reaps it, an expired lease may still be renewed; then every verb of the holder works."""
    enqueue(store)
    lease_id = store.ids_reserve(1)
    held = expired(store, clock, claim_one(store, lease_id=lease_id))
    refused(finish(store, held), LeaseLost, found="its lease has expired")
    assert store.lease_renew([lease_id], LEASE) == [Renewal(lease_id, True)]
    assert finish(store, held) == Finished(held.job_id, 1)
