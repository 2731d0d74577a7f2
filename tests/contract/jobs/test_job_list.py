"""job_list: jobs that fit, the newest first, page by page."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from detent.model.records import JobPlace
from detent.store.contract import Store
from detent.store.jobs.filters import JobSearch
from detent.testing.stores import StoreClock
from tests.contract.jobs.sample_jobs import abort, claim, claim_one, enqueue, finish, new_job, quarantined
from tests.contract.pipelines.sample_pipeline_runs import fanned_out
from tests.contract.refusals import Untouched


def listed(store: Store, after: JobPlace | None = None, limit: int = 100, **chosen: Any) -> list[int]:
    return [row.id for row in store.job_list(JobSearch(**chosen), after, limit).rows]


def test_by_each_column_and_by_all(store: Store, untouched: Untouched) -> None:
    plain = enqueue(store)
    finish(store, claim_one(store))
    mail = enqueue(store, queue="mail", tenant="acme")
    report = enqueue(store, task="report", tenant="acme")
    with untouched():
        assert listed(store) == [report, mail, plain]
        assert listed(store, state="succeeded") == [plain]
        assert listed(store, state="pending") == [report, mail]
        assert listed(store, task="mail.send") == [mail, plain]
        assert listed(store, queue="mail") == [mail]
        assert listed(store, tenant="acme") == [report, mail]
        assert listed(store, tenant="") == [plain]
        assert listed(store, tenant="acme", task="report", state="pending", queue="default") == [report]
        assert listed(store, tenant="acme", state="running") == []


def test_the_newest_first_whatever_their_ids(store: Store, clock: StoreClock) -> None:
    """Ids come in blocks for each process, so a later job may have a lower id."""
    low = store.ids_reserve(1)
    first = enqueue(store)
    clock.advance(1)
    second = enqueue(store, id=low)
    assert second < first
    assert listed(store) == [second, first]


def test_jobs_of_one_call_whatever_their_ids(store: Store, clock: StoreClock) -> None:
    """Numbers that are far apart, in two calls at one time whose numbers lie between each other's."""
    first = store.ids_reserve(10_000)
    for ids in ([first + 5000, first, first + 2], [first + 1], [first + 1024 * n for n in range(1, 5)]):
        store.job_enqueue([new_job(store, id=job_id, task=f"t{job_id % 2}") for job_id in ids])
    everything = sorted((5000, 0, 2, 1, 1024, 2048, 3072, 4096), reverse=True)
    assert [job_id - first for job_id in listed(store)] == everything
    pages, after = list[int](), None
    while (page := store.job_list(JobSearch(), after, 3)).rows:
        pages += [row.id - first for row in page.rows]
        after = page.next
        if after is None:
            break
    assert pages == everything
    clock.advance(1)
    many = store.ids_reserve(3000)
    store.job_enqueue([new_job(store, id=many + n) for n in range(3000)])
    assert listed(store, limit=3000) == [many + n for n in reversed(range(3000))]


def test_page_by_page(store: Store, clock: StoreClock) -> None:
    ids = []
    for n in range(9):
        ids.append(enqueue(store, task="other" if n % 2 else "mail.send"))
        clock.advance(n % 3)
    pages, after = [], None
    while True:
        page = store.job_list(JobSearch(task="mail.send"), after, 2)
        pages.append([row.id for row in page.rows])
        if page.next is None:
            break
        after = page.next
    assert [job_id for page in pages for job_id in page] == ids[::2][::-1]
    assert [len(page) for page in pages] == [2, 2, 1]


def test_a_search_stops_looking_and_says_where_to_go_on(store: Store) -> None:
    """A rare job among many: each page looks at a portion, and no job is missed."""
    rare = enqueue(store, task="rare")
    for _ in range(3):
        enqueue_many(store, 1000)
    page, pages = store.job_list(JobSearch(task="rare"), None, 10, 1000), 1
    while not page.rows:
        assert page.next is not None
        page, pages = store.job_list(JobSearch(task="rare"), page.next, 10, 1000), pages + 1
    assert ([row.id for row in page.rows], pages) == ([rare], 3)
    assert page.next is None


def enqueue_many(store: Store, count: int) -> None:
    first = store.ids_reserve(count)
    store.job_enqueue([new_job(store, id=first + n) for n in range(count)])


def test_dead_letters_are_listed(store: Store) -> None:
    """J10"""
    enqueue(store)
    finish(store, claim_one(store))
    dead = quarantined(store)
    assert listed(store, state="quarantined") == [dead]


def test_a_state_with_many_jobs_is_walked(store: Store) -> None:
    """More jobs are pending than one page may look at: they are found in the order of creation all the same."""
    ids = [enqueue(store) for _ in range(5)]
    assert [row.id for row in store.job_list(JobSearch(state="pending"), None, 2, 3).rows] == ids[:2:-1]


def test_by_key(store: Store) -> None:
    """A key belongs to a tenant."""
    enqueue(store)
    keyed, other = enqueue(store, key="order-17"), enqueue(store, key="order-17", tenant="acme")
    assert listed(store, key="order-17") == [keyed]
    assert listed(store, key="order-17", tenant="acme") == [other]
    assert listed(store, key="order-18") == []


def test_by_correlation_id_and_run(store: Store) -> None:
    enqueue(store)
    one, two = enqueue(store, correlation_id="c"), enqueue(store, correlation_id="c", task="report")
    run = fanned_out(store, ["a", "b"])
    parts = [part.job_id for part in store.partition_list(run.id)]
    assert listed(store, correlation_id="c") == [two, one]
    assert listed(store, correlation_id="c", task="report") == [two]
    assert listed(store, run_id=run.id, state="pending") == parts[::-1]
    assert len(listed(store, run_id=run.id)) == 3
    assert listed(store, run_id=run.id, correlation_id="c") == []


def test_by_time(store: Store, clock: StoreClock) -> None:
    """`since` is included, `until` is not."""
    ids, began = [], clock.now()
    for _ in range(4):
        ids.append(enqueue(store))
        clock.advance(60)
    minute = timedelta(minutes=1)
    assert listed(store, since=began + minute) == ids[:0:-1]
    assert listed(store, until=began + 2 * minute) == [ids[1], ids[0]]
    assert listed(store, since=began + minute, until=began + 2 * minute) == [ids[1]]


def test_by_worker(store: Store) -> None:
    """It holds the job, or has made an attempt at it."""
    done = enqueue(store)
    finish(store, claim_one(store))
    held = enqueue(store)
    claim_one(store, worker="bob")
    enqueue(store)
    assert listed(store, worker="ana") == [done]
    assert listed(store, worker="bob") == [held]


def test_by_error(store: Store) -> None:
    """A part of the job's error, or of that of an attempt before."""
    failing = enqueue(store)
    abort(store, claim_one(store), error="ConnectionError: no route to 10%_host", delay=60)
    dead = enqueue(store)
    abort(store, claim_one(store), error="ValueError: no price", fatal=True)
    assert listed(store, error="no route") == [failing]
    assert listed(store, error="no price") == [dead]
    assert listed(store, error="10%_h") == [failing]
    assert listed(store, error="NO PRICE") == []


def test_by_metadata(store: Store) -> None:
    """Members at the top: texts, numbers, booleans and null; all that are asked for."""
    one = enqueue(store, metadata='{"order":17,"shop":"a\\"b","new":true,"none":null}')
    two = enqueue(store, metadata='{"order":"17","shop":"b","list":[17]}')
    enqueue(store)
    enqueue(store, metadata='{"inner":{"order":17}}')
    enqueue(store, metadata="not JSON")
    assert listed(store, metadata=(("order", "[17]"),)) == [one]
    assert listed(store, metadata=(("order", '["17"]'),)) == [two]
    assert listed(store, metadata=(("order", '["17",17]'),)) == [two, one]
    assert listed(store, metadata=(("order", '["17",17]'), ("shop", '["a\\"b"]'))) == [one]
    assert listed(store, metadata=(("new", "[true]"), ("none", "[null]"))) == [one]
    assert listed(store, metadata=(("new", "[1]"),)) == []
    assert listed(store, metadata=(("order", "[17.0]"),)) == [one]
    assert listed(store, metadata=(("list", "[17]"),)) == []


def test_a_job_that_two_leases_name_is_listed_once(store: Store, clock: StoreClock) -> None:
    """The lease of an attempt that was handed back lasts until the reaper takes it."""
    first, second = enqueue(store), enqueue(store)
    for held in claim(store):
        abort(store, held, "released")
    claim(store)
    assert listed(store, state="running") == [second, first]
