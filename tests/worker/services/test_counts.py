"""The service that adds up the counts of jobs at rest."""

from __future__ import annotations

from contextlib import closing

from detent.model.clock import TurnableClock
from detent.store.contract import Store
from detent.testing.stores import dump, plain_connection, table
from detent.worker.services.counts import Counts
from detent.worker.services.job_activity import JobActivity

_ENDED = 5_100
"""More jobs that ended one by one than the service added up at a time, which was every ten seconds."""


def test_jobs_that_end_one_by_one_are_added_up_too(store: Store, store_url: str) -> None:
    """R4: beyond 500 ends a second the changes piled up for ever, and every count had to read them."""
    with closing(plain_connection(store_url)) as connection:
        # A batch of no jobs takes one place of a round, as a batch of one job does.
        empty = "[]" if store_url.startswith("sqlite") else "{}"
        insert = f"INSERT INTO {table(store_url, 'succeeded_batch')} (job_ids) "
        connection.execute(
            f"{insert} WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < {_ENDED}) "
            f"SELECT '{empty}' FROM n"
        )
        connection.commit()
    Counts(store, JobActivity(), TurnableClock()).run(0.0)
    assert dump(store_url)["succeeded_batch"] == []
