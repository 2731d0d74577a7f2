"""How many things are in each state of a lifecycle. Nothing here reads a large table: counts that the engine keeps are
used, and of everything else a limited number of rows is counted."""

from __future__ import annotations

from collections import Counter

from msgspec import Struct

from detent.lifecycle.definition import Lifecycle
from detent.model.batch_records import BatchFilter
from detent.model.ops_records import OPS_QUEUE
from detent.model.pipeline_records import PIPELINE_ENDED
from detent.store.contract import Verbs

__all__ = ["StateCount", "count_own", "count_rows"]

_RUNS_MAX = 1000
_PARTITIONS_MAX = 1000
_ROWS_MAX = 100_000
_OPS_STATES = {"pending": "queued", "succeeded": "success"}


class StateCount(Struct, frozen=True):
    """How many things are in a state; None if that is not counted. If `more` is true, there may be more: only the
    newest runs or the first rows were counted."""

    state: str
    number: int | None
    more: bool = False


def count_own(verbs: Verbs, lifecycle: Lifecycle) -> list[StateCount]:
    """Count the things in each state of one of Detent's own lifecycles."""
    match lifecycle.name:
        case "job":
            return _listed(lifecycle, _jobs(verbs))
        case "ops_run":
            return _listed(lifecycle, _ops_runs(verbs))
        case "batch_run" | "target":
            rows = verbs.batch_list(BatchFilter(), None, _RUNS_MAX)
            found: Counter[str] = Counter()
            for row in rows:
                if lifecycle.name == "batch_run":
                    found[row.state] += 1
                    continue
                known = {name: getattr(row, name) for name in lifecycle.states if name != "preview"}
                found.update(known, preview=row.total - sum(known.values()))
            return _listed(lifecycle, found, more=len(rows) == _RUNS_MAX)
        case "pipeline_run" | "partition":
            return _pipelines(verbs, lifecycle)
        case _:
            return [StateCount(state, None) for state in lifecycle.states]


def count_rows(verbs: Verbs, lifecycle: Lifecycle, table: str, state_column: str) -> list[StateCount]:
    """Count the rows of a user's table by state."""
    found = verbs.entity_counts(table, state_column, _ROWS_MAX)
    return _listed(lifecycle, Counter(found), more=sum(found.values()) == _ROWS_MAX)


def _listed(lifecycle: Lifecycle, found: Counter[str], *, more: bool = False) -> list[StateCount]:
    return [StateCount(state, found[state], more) for state in lifecycle.states]


def _jobs(verbs: Verbs) -> Counter[str]:
    found: Counter[str] = Counter()
    for one in verbs.queue_depths():
        found[one.state] += one.jobs
    return found


def _ops_runs(verbs: Verbs) -> Counter[str]:
    """Count ops runs by the jobs that they are. A claimed run is told from a running one by reading it."""
    found: Counter[str] = Counter()
    for one in verbs.queue_depths():
        if one.queue == OPS_QUEUE:
            found[_OPS_STATES.get(one.state, one.state)] += one.jobs
    if found["running"]:
        found["claimed"] = min(found["running"], len(verbs.ops_list(None, None, "claimed", None, _RUNS_MAX)))
        found["running"] -= found["claimed"]
    return found


def _pipelines(verbs: Verbs, lifecycle: Lifecycle) -> list[StateCount]:
    rows = verbs.pipeline_list(limit=_RUNS_MAX)
    more = len(rows) == _RUNS_MAX
    if lifecycle.name == "pipeline_run":
        return _listed(lifecycle, Counter(row.state for row in rows), more=more)
    found: Counter[str] = Counter()
    for row in rows:
        if row.state in PIPELINE_ENDED or row.parts_ended == row.partitions:
            found.update(completed=row.parts_ended - row.parts_failed, failed=row.parts_failed)
        else:
            parts = verbs.partition_list(row.id, limit=_PARTITIONS_MAX)
            found.update(part.state for part in parts)
            more = more or len(parts) == _PARTITIONS_MAX
    return _listed(lifecycle, found, more=more)
