"""Every verb of the contract on PostgreSQL, composed of the classes of the nouns."""

from __future__ import annotations

from detent.store.alerts.postgres import PostgresAlerts
from detent.store.batches.postgres import PostgresBatches
from detent.store.entities.postgres import PostgresEntities
from detent.store.graphs.postgres import PostgresGraphs
from detent.store.jobs.postgres_attempts import PostgresAttempts
from detent.store.jobs.postgres_claim import PostgresClaim
from detent.store.jobs.postgres_enqueue import PostgresEnqueue
from detent.store.jobs.postgres_lists import PostgresLists
from detent.store.jobs.postgres_moves import PostgresMoves
from detent.store.jobs.postgres_upkeep import PostgresUpkeep
from detent.store.limits.postgres import PostgresLimits
from detent.store.move.postgres import PostgresDatabaseMoves
from detent.store.operations.postgres import PostgresOperations
from detent.store.ops.postgres import PostgresOps
from detent.store.pipelines.postgres import PostgresPipelines
from detent.store.schedules.postgres import PostgresSchedules
from detent.store.tokens.postgres import PostgresTokens
from detent.store.webhooks.postgres import PostgresWebhooks
from detent.store.workers.postgres import PostgresWorkers
from detent.store.workflows.postgres import PostgresWorkflows

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
    PostgresBatches,
    PostgresLimits,
    PostgresSchedules,
    PostgresWorkers,
    PostgresAlerts,
    PostgresOps,
    PostgresPipelines,
    PostgresTokens,
    PostgresWebhooks,
    PostgresWorkflows,
    PostgresGraphs,
    PostgresDatabaseMoves,
):
    """Every verb, as one statement each, in one session."""
