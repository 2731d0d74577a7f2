"""Every verb of the contract on PostgreSQL, composed of the classes of the nouns."""

from __future__ import annotations

from detent.store.batches.postgres import PostgresBatches
from detent.store.entities.postgres import PostgresEntities
from detent.store.jobs.postgres_attempts import PostgresAttempts
from detent.store.jobs.postgres_claim import PostgresClaim
from detent.store.jobs.postgres_enqueue import PostgresEnqueue
from detent.store.jobs.postgres_lists import PostgresLists
from detent.store.jobs.postgres_moves import PostgresMoves
from detent.store.jobs.postgres_upkeep import PostgresUpkeep
from detent.store.operations.postgres import PostgresOperations
from detent.store.ops.postgres import PostgresOps
from detent.store.pipelines.postgres import PostgresPipelines
from detent.store.postgres.verbs_alerting import PostgresAlerting
from detent.store.postgres.verbs_keeping import PostgresKeeping

__all__ = ["PostgresVerbs"]


class PostgresVerbs(
    PostgresEnqueue,
    PostgresClaim,
    PostgresAttempts,
    PostgresMoves,
    PostgresLists,
    PostgresUpkeep,
    PostgresOperations,
    PostgresEntities,
    PostgresKeeping,
    PostgresAlerting,
    PostgresBatches,
    PostgresOps,
    PostgresPipelines,
):
    """Every verb, as one statement each, in one session."""
