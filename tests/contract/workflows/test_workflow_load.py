"""workflow_load: what an attempt has to know before it continues."""

from __future__ import annotations

from detent.errors import LeaseLost
from detent.store.contract import Store
from detent.testing.stores import StoreClock
from tests.contract.jobs.sample_jobs import LEASE, abort, claim_one
from tests.contract.refusals import Untouched, refused
from tests.contract.workflows.sample_workflows import begin, load, parked_for_signal, paths, record, send, step


def test_nothing_is_on_record_at_first(store: Store, clock: StoreClock) -> None:
    history = load(store, begin(store))
    assert (history.version, history.generation, history.steps, history.next) == (None, 1, [], None)
    assert (history.begun, history.cancelled, history.parks, history.undoing, history.depth) == ((), False, 0, False, 0)
    assert (history.now, history.payload) == (clock.now(), None)


def test_the_next_attempt_gets_the_steps_in_the_order_of_their_paths(store: Store) -> None:
    held = begin(store)
    store.step_record([step(held, path, seq=seq) for seq, path in enumerate(("b", "a", "c#2", "c", "a:ü", "Z"))])
    abort(store, held)
    history = load(store, claim_one(store))
    assert paths(history) == ["Z", "a", "a:ü", "b", "c", "c#2"]
    assert [one.seq for one in history.steps] == [5, 1, 4, 0, 3, 2]
    assert history.version == 1


def test_pages(store: Store) -> None:
    held = begin(store)
    store.step_record([step(held, f"s{n:02}", seq=n) for n in range(10)])
    first = load(store, held, limit=4)
    assert (paths(first), first.next) == ([f"s{n:02}" for n in range(4)], "s03")
    second = load(store, held, after=first.next, limit=4)
    third = load(store, held, after=second.next, limit=4)
    assert (paths(third), third.next) == (["s08", "s09"], None)
    exact = load(store, held, limit=10)
    assert (len(exact.steps), exact.next) == (10, None)


def test_a_finished_scope_is_one_row(store: Store) -> None:
    """F14: nothing inside a scope that is on record is loaded, and its neighbours are."""
    held = begin(store)
    for n in range(6):
        scope = f"p:{n}"
        inner = [step(held, f"{scope}/s{m}", seq=10 * n + m, scope=scope) for m in range(40)]
        store.step_record([*inner, step(held, f"{scope}/in/x", scope=f"{scope}/in")])
        if n != 3:
            record(store, held, scope, kind="scope", seq=10 * n + 9)
    record(store, held, "p:1-after")
    record(store, held, "q")
    whole = load(store, held)
    open_scope = [path for path in paths(whole) if path.startswith("p:3/")]
    assert len(open_scope) == 41
    assert [path for path in paths(whole) if path not in open_scope] == [
        "p:0",
        "p:1",
        "p:1-after",
        "p:2",
        "p:4",
        "p:5",
        "q",
    ]
    assert whole.next is None


def test_pages_pass_over_finished_scopes_too(store: Store) -> None:
    held = begin(store)
    for scope in ("a", "b", "c"):
        store.step_record([step(held, f"{scope}/s{m}", seq=m, scope=scope) for m in range(5)])
        record(store, held, scope, kind="scope")
    found: list[str] = []
    after: str | None = None
    for _ in range(10):
        page = load(store, held, after=after, limit=1)
        found += paths(page)
        after = page.next
        if after is None:
            break
    assert found == ["a", "b", "c"]


def test_it_says_that_a_cancel_was_requested(store: Store) -> None:
    held = begin(store)
    store.job_cancel([held.job_id], "bob")
    assert load(store, held).cancelled
    abort(store, held, "cancelled")


def test_a_workflow_that_is_back_waits_no_more(store: Store) -> None:
    job_id = parked_for_signal(store)
    assert len(store.wait_list(job_id=job_id).rows) == 1
    send(store, job_id)
    held = claim_one(store)
    load(store, held)
    abort(store, held, delay=60)
    assert store.wait_list(job_id=job_id).rows == []


def test_only_the_holder(store: Store, clock: StoreClock, untouched: Untouched) -> None:
    held = begin(store)
    abort(store, held)
    current = claim_one(store)
    with untouched():
        refused(store.workflow_load(held.job_id, held.attempt), LeaseLost, attempt=1)
        refused(store.workflow_load(held.job_id + 1000, 1), LeaseLost)
    clock.advance(LEASE + 1)
    with untouched():
        refused(store.workflow_load(current.job_id, current.attempt), LeaseLost)


def test_scopes_of_one_name_are_all_left_out(store: Store) -> None:
    """`part#2` comes between `part` and what is inside of it; a page may begin anywhere."""
    held = begin(store)
    for seq, (path, scope, kind) in enumerate(
        [
            *((f"{part}/{name}", part, "call") for part in ("part", "part#2", "part:k") for name in ("a", "b")),
            *((part, "", "scope") for part in ("part", "part#2", "part:k")),
            *(("open/a", "open", "call"), ("open/deep/x", "open/deep", "call"), ("open/deep", "open", "scope")),
            ("part~deadline", "", "deadline"),
        ]
    ):
        record(store, held, path, seq=seq, scope=scope, kind=kind)
    outside = ["open/a", "open/deep", "part", "part#2", "part:k", "part~deadline"]
    assert paths(load(store, held)) == outside
    for size in range(1, 6):
        found: list[str] = []
        after: str | None = None
        while page := load(store, held, after=after, limit=size):
            found += paths(page)
            if (after := page.next) is None:
                break
        assert found == outside
