"""All the verbs over one executor, and the way to give each a transaction of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from detent.store.alerts.sqlite_deliveries import SqliteAlertDeliveries
from detent.store.alerts.sqlite_measures import SqliteAlertMeasures
from detent.store.batches.sqlite import SqliteBatches
from detent.store.contract import CATALOGUE
from detent.store.entities.sqlite import SqliteEntities
from detent.store.graphs.sqlite import SqliteGraphs
from detent.store.jobs.sqlite_effects import SqliteEffects
from detent.store.jobs.sqlite_lists import SqliteLists
from detent.store.jobs.sqlite_retention import SqliteRetention
from detent.store.jobs.sqlite_row_by_row import SqliteRowByRow
from detent.store.jobs.sqlite_upkeep import SqliteUpkeep
from detent.store.limits.sqlite import SqliteLimits
from detent.store.move.sqlite import SqliteDatabaseMoves
from detent.store.operations.sqlite import SqliteOperations
from detent.store.ops.sqlite import SqliteOps
from detent.store.pipelines.sqlite_consolidation import SqliteConsolidation
from detent.store.schedules.sqlite import SqliteSchedules
from detent.store.tokens.sqlite import SqliteTokens
from detent.store.webhooks.sqlite import SqliteWebhooks
from detent.store.workers.sqlite import SqliteWorkers
from detent.store.workflows.sqlite import SqliteWorkflows

__all__ = ["EachAlone", "SqliteVerbs"]

T = TypeVar("T")


class SqliteVerbs(
    SqliteWorkflows,
    SqliteGraphs,
    SqliteOps,
    SqliteEffects,
    SqliteRowByRow,
    SqliteOperations,
    SqliteEntities,
    SqliteBatches,
    SqliteRetention,
    SqliteLimits,
    SqliteWorkers,
    SqliteSchedules,
    SqliteUpkeep,
    SqliteLists,
    SqliteConsolidation,
    SqliteAlertMeasures,
    SqliteAlertDeliveries,
    SqliteTokens,
    SqliteWebhooks,
    SqliteDatabaseMoves,
):
    """Every verb of the contract, inside the transaction that the executor stands for."""


class EachAlone(SqliteVerbs):
    """The verbs with a transaction each: `_write` or `_read` of the class that inherits this runs them."""


class _Runs(Protocol):
    def _write(self, work: Callable[[SqliteVerbs], T]) -> T: ...

    def _read(self, work: Callable[[SqliteVerbs], T]) -> T: ...


def _writing(verb: Callable[..., Any]) -> Callable[..., Any]:
    def alone(self: _Runs, /, *args: Any, **kwargs: Any) -> Any:
        return self._write(lambda verbs: verb(verbs, *args, **kwargs))

    return alone


def _reading(verb: Callable[..., Any]) -> Callable[..., Any]:
    def alone(self: _Runs, /, *args: Any, **kwargs: Any) -> Any:
        return self._read(lambda verbs: verb(verbs, *args, **kwargs))

    return alone


for _verb in CATALOGUE.values():
    _alone = (_reading if _verb.reads else _writing)(getattr(SqliteVerbs, _verb.name))
    _alone.__name__, _alone.__doc__ = _verb.name, getattr(SqliteVerbs, _verb.name).__doc__
    setattr(EachAlone, _verb.name, _alone)
