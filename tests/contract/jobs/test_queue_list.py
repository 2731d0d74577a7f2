"""queue_list: who paused what."""

from __future__ import annotations

from detent.model.service_records import QueueRow
from detent.store.contract import Store
from tests.contract.refusals import Untouched


def test_queues_that_were_paused(store: Store, untouched: Untouched) -> None:
    """J12: also where no job is in them."""
    store.queue_pause("mail", "ana", "no power")
    store.queue_pause("jobs", "bob")
    store.queue_resume("jobs", "bob")
    with untouched():
        found = store.queue_list()
    assert found == [
        QueueRow(name="jobs", paused_at=None, paused_by=None, reason=None),
        QueueRow(name="mail", paused_at=found[1].paused_at, paused_by="ana", reason="no power"),
    ]
    assert found[1].paused_at is not None
