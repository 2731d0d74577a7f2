"""workflow_versions: how many workflows that have not ended began under each version."""

from __future__ import annotations

from detent.model.workflow_records import VersionCount
from detent.store.contract import Store
from tests.contract.jobs.sample_jobs import abort, claim_one, enqueue, finish
from tests.contract.workflows.sample_workflows import begin, park, record, signal


def test_in_every_state_that_is_not_an_end(store: Store) -> None:
    enqueue(store, task="mail.plain")
    ended = begin(store)
    record(store, ended)
    finish(store, ended)
    park(store, begin(store), signal(), version=1)
    dead = begin(store)
    record(store, dead, version=2)
    abort(store, dead, fatal=True)
    running = begin(store)
    record(store, running, version=2)
    enqueue(store, task="mail.other")
    other = claim_one(store, tasks=["mail.other"])
    record(store, other, version=2)
    abort(store, other, delay=60)
    counts = [VersionCount("mail.other", 2, 1), VersionCount("mail.send", 1, 1), VersionCount("mail.send", 2, 2)]
    assert store.workflow_versions() == counts
    assert store.workflow_versions("mail.other") == counts[:1]
    assert store.workflow_versions("mail.none") == []
