"""limit_close: breakers under which an attempt has succeeded close, a page of them at a time."""

from __future__ import annotations

from detent.model.limit_records import NewLimit
from detent.store.contract import Store
from detent.testing.stores import StoreClock
from tests.contract.jobs.sample_jobs import abort, claim, enqueue, finish

TASK = "mail.send"


def throttle(store: Store, clock: StoreClock, key: str) -> None:
    """Open the breaker of a key, and let it become half open."""
    enqueue(store, limit_key=key)
    for _ in range(6):
        (held,) = claim(store)
        abort(store, held, "throttled", delay=1)
        clock.advance(1)
        store.job_promote(10)
    clock.advance(60)


def is_open(store: Store, key: str) -> bool:
    return any(row.open_until is not None for row in store.limit_list() if row.key == key)


def test_a_success_closes_a_breaker_that_no_claim_uses_any_more(store: Store, clock: StoreClock) -> None:
    """B5: a claim looks only at the keys it uses, so that many open breakers do not slow it down."""
    store.limit_put(NewLimit(key=TASK, concurrency_max=5, tasks=(TASK,)))
    for key in ("shop:a", "shop:b", "shop:c"):
        throttle(store, clock, key)
        (held,) = claim(store)
        if key != "shop:b":
            finish(store, held)
    assert claim(store) == []
    assert [is_open(store, f"shop:{one}") for one in "abc"] == [True, True, True]
    assert store.limit_close("", 2) == "shop:b"
    assert [is_open(store, f"shop:{one}") for one in "abc"] == [False, True, True]
    assert store.limit_close("shop:b", 2) is None
    assert [is_open(store, f"shop:{one}") for one in "abc"] == [False, True, False]
    (line,) = [line for line in store.transitions("limit", "shop:a") if line.to_state == "closed"]
    assert (line.actor, line.reason) == ("system", "an attempt has succeeded")
