"""job_get: jobs as they stand, in the order asked."""

from __future__ import annotations

from detent.store.contract import Store
from tests.contract.jobs.sample_jobs import enqueue, succeeded
from tests.contract.refusals import Untouched


def test_in_the_order_asked_with_gaps(store: Store, untouched: Untouched) -> None:
    """J13"""
    first, second = succeeded(store), enqueue(store)
    with untouched():
        rows = store.job_get([second, 10**12, first, second])
    assert [row and (row.id, row.state) for row in rows] == [
        (second, "pending"),
        None,
        (first, "succeeded"),
        (second, "pending"),
    ]
    assert store.job_get([]) == []


def test_text_comes_back_letter_for_letter(store: Store) -> None:
    """S3: what came through the door is neither reordered nor rounded."""
    text = '{"b":1,"a":1.0,"big":123456789012345678,"s":"Zoë \\ud83d\\ude80 \\n","e":1e-7}'
    job_id = enqueue(store, payload=text, metadata=text)
    (row,) = store.job_get([job_id])
    assert row is not None
    assert (row.payload, row.metadata) == (text, text)
