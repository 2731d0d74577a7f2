"""record_search: who changed what, the newest first."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from detent.store.contract import Store
from detent.store.jobs.filters import RecordSearch
from detent.testing.stores import StoreClock
from tests.contract.jobs.sample_jobs import claim_one, enqueue, finish, quarantined
from tests.contract.refusals import Untouched


def lines(store: Store, **chosen: Any) -> list[tuple[str, str, str]]:
    return [(row.entity, row.entity_id, row.trigger) for row in store.record_search(RecordSearch(**chosen)).rows]


def test_by_actor_entity_and_time(store: Store, clock: StoreClock, untouched: Untouched) -> None:
    """The ordinary steps of attempts are not among them."""
    enqueue(store)
    finish(store, claim_one(store))
    dead = str(quarantined(store))
    store.queue_pause("mail", "ana", "down")
    clock.advance(60)
    noon = clock.now()
    store.job_retry([int(dead)], "ana", "again")
    store.job_cancel([int(dead)], "ben")
    clock.advance(60)
    store.queue_resume("mail", "ana")
    with untouched():
        resumed, retried, paused = ("queue", "mail", "resume"), ("job", dead, "retry"), ("queue", "mail", "pause")
        assert lines(store) == [resumed, ("job", dead, "cancel"), retried, paused]
        assert lines(store, actor="ana") == [resumed, retried, paused]
        assert lines(store, actor="ana", entity="job") == [retried]
        assert lines(store, entity="queue", entity_id="mail") == [resumed, paused]
        assert lines(store, entity="job", entity_id=dead, actor="ben") == [("job", dead, "cancel")]
        assert lines(store, actor="ana", since=noon) == [resumed, retried]
        assert lines(store, until=noon) == [paused]
        assert lines(store, since=noon, until=noon + timedelta(seconds=60), actor="ana") == [retried]
        assert lines(store, actor="eve") == lines(store, entity="job", entity_id="x") == []
    (row,) = store.record_search(RecordSearch(actor="ana"), limit=1, after=None).rows
    assert (row.actor, row.from_state, row.to_state, row.reason) == ("ana", "paused", "open", None)


def test_page_by_page(store: Store) -> None:
    """All lines once, also those of one moment; and a search that stops looking says where to go on."""
    for _ in range(3):
        store.queue_pause("mail", "ana")
        store.queue_resume("mail", "ben")
    found, after = [], None
    while True:
        page = store.record_search(RecordSearch(actor="ben"), after, 2)
        found += [row.n for row in page.rows]
        if (after := page.next) is None:
            break
    assert (len(found), found) == (3, sorted(found, reverse=True))
    for _ in range(600):
        store.queue_pause("bulk", "eve")
        store.queue_resume("bulk", "eve")
    page = store.record_search(RecordSearch(entity="queue", actor=None, until=None), None, 10, 1000)
    assert len(page.rows) == 10
    page = store.record_search(RecordSearch(entity="job"), None, 10, 1000)
    assert page.rows == []
    assert page.next is not None
    assert store.record_search(RecordSearch(entity="job"), page.next, 10, 1000).next is None
