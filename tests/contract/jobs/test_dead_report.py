"""dead_report: what dead letters died of."""

from __future__ import annotations

from detent.model.service_records import DeadGroup
from detent.store.contract import Store
from detent.testing.stores import StoreClock
from tests.contract.jobs.sample_jobs import abort, claim_one, enqueue, quarantined

FRAMES = 'Traceback (most recent call last):\n  File "shop.py", line 3, in do\n    find(thing)\n    ^^^^\n'
KINDS = {
    f"{FRAMES}ValueError: no such thing": "ValueError",
    f"{FRAMES}shop.errors.OutOfStock: ring\n  more of it\nand more": "shop.errors.OutOfStock",
    f"{FRAMES}KeyError: 7\n\nDuring handling of it:\n\n{FRAMES}CommandFailed: exit code 3\n  err": "CommandFailed",
    f"{FRAMES}KeyboardInterrupt": "KeyboardInterrupt",
    '  + Exception Group Traceback (most recent call last):\n  |   File "a.py", line 1\n  | ExceptionGroup: two (2)\n'
    "  +-+----": "ExceptionGroup",
    "its process ended with signal 9 while it ran": "its process ended with signal 9 while it ran",
    "\n \n late: \u00fcber": "late",
    "\u00fcber: all": "\u00fcber: all",
    "x" * 79 + " " + "y" * 20: "x" * 79 + " ",
    "": "",
}


def dead(store: Store, error: str | None = "boom", **overrides: str) -> int:
    job_id = enqueue(store, **overrides)
    abort(store, claim_one(store, tasks=[overrides.get("task", "mail.send")]), error=error, fatal=True)
    return job_id


def test_like_stands_with_like_the_largest_group_first(store: Store, clock: StoreClock) -> None:
    """J10: how many of which task and queue died of what, since when, after how many attempts, and one to look at."""
    began = clock.now()
    dead(store, f"{FRAMES}ValueError: one")
    again = enqueue(store)
    abort(store, claim_one(store), error="not yet")
    clock.advance(60)
    abort(store, claim_one(store), error=f"{FRAMES}ValueError: two", fatal=True)
    other = dead(store, "ValueError: three", task="mail.drop", queue="slow")
    enqueue(store)
    assert store.dead_report(None, None, None, 10) == [
        DeadGroup(
            task="mail.send",
            queue="default",
            reason="fatal",
            kind="ValueError",
            jobs=2,
            attempts=3,
            oldest_at=began,
            newest_at=clock.now(),
            sample_id=again,
        ),
        DeadGroup(
            task="mail.drop",
            queue="slow",
            reason="fatal",
            kind="ValueError",
            jobs=1,
            attempts=1,
            oldest_at=clock.now(),
            newest_at=clock.now(),
            sample_id=other,
        ),
    ]


def test_a_kind_is_the_class_of_the_exception_or_the_first_words(store: Store) -> None:
    """J10: whatever the text looks like, every database calls it the same."""
    found = {}
    for error in KINDS:
        job_id = dead(store, error)
        found[error] = next(one.kind for one in store.dead_report(None, None, None, 100) if one.sample_id == job_id)
    assert found == KINDS


def test_only_what_fits_and_no_more_groups_than_asked_for(store: Store) -> None:
    quarantined(store, tenant="a", queue="slow")
    quarantined(store, tenant="b")
    store.job_force(enqueue(store), "quarantined", "ana", "look at it")

    def jobs(task: str | None = None, queue: str | None = None, tenant: str | None = None) -> list[tuple[str, str]]:
        return [(one.queue, one.reason) for one in store.dead_report(task, queue, tenant, 10)]

    assert jobs(tenant="a") == [("slow", "fatal")]
    assert jobs(queue="default", tenant="b") == [("default", "fatal")]
    assert jobs(task="nobody") == []
    assert len(jobs(task="mail.send")) == 3
    assert len(store.dead_report(None, None, None, 1)) == 1
