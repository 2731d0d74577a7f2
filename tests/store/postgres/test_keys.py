"""Keys that are given back at the claim, while somebody asks for them in an open transaction."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import psycopg
import pytest

from detent.model.records import Enqueued
from detent.store.open import open_store
from tests.contract.jobs.sample_jobs import claim, new_job


@pytest.mark.parametrize("ttl", [None, 3600.0])
def test_a_claim_gives_a_key_back_that_an_open_transaction_has_asked_for(
    postgres_store_url: str, ttl: float | None
) -> None:
    """The question locked the key, and a claim passes over locked keys: it kept its key for ever, and every later call
    was answered with a job that had ended."""
    said: dict[str, Any] = {"key": "unique:7", "key_ttl": ttl, "fingerprint": "same", "unique_pending": True}
    with closing(open_store(postgres_store_url)) as store:
        first, second, third = (new_job(store, **said) for _ in range(3))
        assert store.job_enqueue([first]) == [Enqueued(first.id, True)]
        with psycopg.connect(postgres_store_url) as connection:
            assert store.on(connection).job_enqueue([second]) == [Enqueued(first.id, False)]
            (claimed,) = claim(store)
            assert claimed.job_id == first.id
        assert store.job_enqueue([third]) == [Enqueued(third.id, True)]
        assert store.verify() == []
