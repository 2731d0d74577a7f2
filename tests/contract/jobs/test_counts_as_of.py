"""counts_as_of: the counts of any queue at a past moment."""

from __future__ import annotations

from detent.model.records import Count
from detent.store.contract import Store
from detent.testing.stores import StoreClock
from tests.contract.jobs.sample_jobs import abort, claim, claim_one, enqueue, finish
from tests.contract.refusals import Untouched


def by_name(counts: list[Count]) -> list[Count]:
    return sorted(counts, key=lambda count: (count.tenant, count.queue, count.state))


def test_every_moment_gives_what_counts_gave_then(store: Store, clock: StoreClock, untouched: Untouched) -> None:
    """E5: after any sequence of verbs, each earlier answer can be had again from the record."""
    seen = [(clock.now(), store.counts())]

    def tick() -> None:
        seen.append((clock.now(), store.counts()))
        clock.advance(1)

    clock.advance(1)
    first = enqueue(store, queue="mail")
    second = enqueue(store, tenant="acme")
    tick()
    held = claim(store)
    tick()
    finish(store, held[0])
    abort(store, held[1], fatal=True)
    tick()
    store.job_retry([held[1].job_id], "ana")
    third = enqueue(store)
    store.job_cancel([third], "ana")
    tick()
    again = claim_one(store)
    tick()
    store.job_cancel([again.job_id], "ana")
    abort(store, again, "cancelled")
    tick()
    assert {first, second} == {each.job_id for each in held}
    with untouched():
        for moment, then in seen:
            assert by_name(store.counts_as_of(moment)) == by_name(then)
