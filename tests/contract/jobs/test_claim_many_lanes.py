"""job_claim: the promises of its order hold if more lanes have ready jobs than one claim looks at."""

from __future__ import annotations

from collections import Counter

from detent.model.limit_records import NewLimit
from detent.model.records import Claimed
from detent.store.contract import Store
from tests.contract.jobs.sample_jobs import claim, new_job

TENANTS = 250
PORTION = 20


def drained(store: Store, claims: int = 1000) -> list[Claimed]:
    """Return the jobs of at most `claims` claims in a row, until none is left."""
    taken: list[Claimed] = []
    last = None
    for _ in range(claims):
        held = claim(store, limit=PORTION, after_tenant=last)
        if not held:
            break
        taken += held
        last = held[-1].tenant
    return taken


def test_every_tenant_has_a_turn_before_any_has_a_second(store: Store) -> None:
    """J4: no tenant is starved, whatever the others have waiting."""
    wanted = [(f"t{n:03}", times) for n in range(TENANTS) for times in range(3 if n % 2 else 2)]
    store.job_enqueue([new_job(store, tenant=tenant) for tenant, _ in wanted])
    taken = drained(store, claims=TENANTS // PORTION)
    assert max(Counter(job.tenant for job in taken).values()) == 1
    taken += drained(store)
    assert Counter(job.tenant for job in taken) == Counter(tenant for tenant, _ in wanted)
    assert len({job.job_id for job in taken}) == len(wanted)


def test_priority_holds_within_each_tenant(store: Store) -> None:
    """J4: a tenant's urgent job goes first, though its lane comes later, and its older job of another task too."""
    plain = [new_job(store, tenant=f"t{n:03}") for n in range(TENANTS)]
    urgent = [new_job(store, tenant=f"t{n:03}", priority=5) for n in range(TENANTS)]
    store.job_enqueue([*plain, *urgent])
    order = {job.job_id: place for place, job in enumerate(drained(store))}
    assert len(order) == 2 * TENANTS
    assert all(order[second.id] < order[first.id] for first, second in zip(plain, urgent, strict=True))


def test_a_newcomer_is_served_within_one_round(store: Store) -> None:
    """J4: a tenant that comes while others have many jobs waiting waits for one round of turns at most."""
    store.job_enqueue([new_job(store, tenant=f"t{n:03}") for n in range(TENANTS) for _ in range(4)])
    drained(store, claims=3)
    (late,) = store.job_enqueue([new_job(store, tenant="a late one")])
    taken = drained(store, claims=-(-TENANTS // PORTION) + 1)
    assert late in [type(late)(job.job_id, True) for job in taken]


def test_keys_without_room_are_passed_over(store: Store) -> None:
    """J12: one job of each key at once; a job without a key behind hundreds of keys without room is claimed."""
    store.limit_put(NewLimit(key="mail", concurrency_max=1, tasks=("mail.send",)))
    store.job_enqueue([new_job(store, limit_key=f"shop:{n:03}") for n in range(TENANTS) for _ in range(2)])
    taken = drained(store)
    assert len(taken) == TENANTS
    (free,) = store.job_enqueue([new_job(store)])
    assert [type(free)(job.job_id, True) for job in drained(store)] == [free]
    assert claim(store) == []


def test_a_tenant_with_very_many_lanes_is_drained(store: Store) -> None:
    """G1: a lane that is not among the first hundred of its tenant is claimed from, though the first ones are empty."""
    jobs = [new_job(store, limit_key=f"shop:{n:03}") for n in range(2 * TENANTS)]
    store.job_enqueue(jobs)
    assert {job.job_id for job in drained(store)} == {job.id for job in jobs}
