"""signal_list: the mailbox of a workflow, with what was taken."""

from __future__ import annotations

from detent.store.contract import Store
from tests.contract.jobs.sample_jobs import claim_one, enqueue
from tests.contract.workflows.sample_workflows import begin, is_sent, look, send, signal


def test_oldest_first_over_all_names(store: Store) -> None:
    job_id = enqueue(store)
    other = enqueue(store)
    seqs = [is_sent(send(store, job_id, name)).seq for name in ("b", "a", "b")]
    send(store, other, "a")
    assert [(row.name, row.seq) for row in store.signal_list(job_id)] == list(zip(("b", "a", "b"), seqs, strict=True))
    assert [row.seq for row in store.signal_list(job_id, after=seqs[0], limit=1)] == [seqs[1]]
    assert store.signal_list(job_id, after=seqs[2]) == []


def test_which_step_has_taken_it(store: Store) -> None:
    job_id = enqueue(store)
    for payload in ("1", "2"):
        send(store, job_id, payload=payload)
    look(store, claim_one(store), signal(), path="w")
    assert [row.path for row in store.signal_list(job_id)] == ["w", None]


def test_only_those_that_no_step_has_taken(store: Store) -> None:
    held = begin(store)
    for name in ("b", "a", "b"):
        send(store, held.job_id, name)
    first, second, third = store.signal_list(held.job_id)
    look(store, held, signal("b"))
    assert store.signal_list(held.job_id, unread=True) == [second, third]
    assert store.signal_list(held.job_id, unread=True, limit=1) == [second]
    assert store.signal_list(held.job_id, unread=True, after=second.seq) == [third]
    assert [row.path for row in store.signal_list(held.job_id)] == ["w", None, None]
    assert first.path is None
