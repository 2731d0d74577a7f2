"""step_list: the record of a workflow, now and at an earlier time."""

from __future__ import annotations

from detent.store.contract import Store
from detent.testing.stores import StoreClock
from tests.contract.jobs.sample_jobs import finish
from tests.contract.workflows.sample_workflows import begin, record, step


def test_all_steps_also_those_inside_scopes_and_after_the_end(store: Store) -> None:
    held = begin(store)
    store.step_record([step(held, "s/x", scope="s"), step(held, "s", kind="scope"), step(held, "t")])
    finish(store, held)
    page = store.step_list(held.job_id)
    assert ([row.path for row in page.rows], page.next) == (["s", "s/x", "t"], None)


def test_at_an_earlier_time(store: Store, clock: StoreClock) -> None:
    held = begin(store)
    times = []
    for n in range(3):
        times.append(clock.advance(1))
        record(store, held, f"s{n}")
    for n, at in enumerate(times):
        assert len(store.step_list(held.job_id, at=at).rows) == n + 1


def test_pages(store: Store) -> None:
    held = begin(store)
    store.step_record([step(held, f"s{n}", seq=n) for n in range(5)])
    found: list[str] = []
    after: str | None = None
    while True:
        page = store.step_list(held.job_id, after=after, limit=2)
        found += [row.path for row in page.rows]
        after = page.next
        if after is None:
            break
    assert found == [f"s{n}" for n in range(5)]


def test_nothing_is_on_record(store: Store) -> None:
    assert store.step_list(10**6).rows == []
