"""job_list: jobs that fit, page by page."""

from __future__ import annotations

from detent.store.contract import JobFilter, Store
from tests.contract.kit import Untouched, claim_one, enqueue, finish, quarantined


def listed(store: Store, after_id: int = 0, limit: int = 100, **chosen: str) -> list[int]:
    return [row.id for row in store.job_list(JobFilter(**chosen), after_id, limit)]


def test_by_each_column_and_by_all(store: Store, untouched: Untouched) -> None:
    plain = enqueue(store)
    finish(store, claim_one(store))
    mail = enqueue(store, queue="mail", tenant="acme")
    report = enqueue(store, task="report", tenant="acme")
    with untouched():
        assert listed(store) == [plain, mail, report]
        assert listed(store, state="succeeded") == [plain]
        assert listed(store, state="pending") == [mail, report]
        assert listed(store, task="mail.send") == [plain, mail]
        assert listed(store, queue="mail") == [mail]
        assert listed(store, tenant="acme") == [mail, report]
        assert listed(store, tenant="") == [plain]
        assert listed(store, tenant="acme", task="report", state="pending", queue="default") == [report]
        assert listed(store, tenant="acme", state="running") == []


def test_page_by_page(store: Store) -> None:
    ids = [enqueue(store, task="other" if n % 2 else "mail.send") for n in range(9)]
    pages = []
    after = 0
    while page := listed(store, after, 2, task="mail.send"):
        pages.append(page)
        after = page[-1]
    assert [job_id for page in pages for job_id in page] == ids[::2]
    assert [len(page) for page in pages] == [2, 2, 1]


def test_dead_letters_are_listed(store: Store) -> None:
    """J10"""
    enqueue(store)
    finish(store, claim_one(store))
    dead = quarantined(store)
    assert listed(store, state="quarantined") == [dead]
