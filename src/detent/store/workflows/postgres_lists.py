"""Looking at workflows on PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from detent.model.workflow_records import (
    ChildGroupRow,
    SignalRow,
    StepPage,
    VersionCount,
    WaitPage,
    WaitRow,
    WorkflowPage,
    WorkflowRow,
    WorkflowSearch,
)
from detent.store.postgres.statement import Row, Statement, moment, named, numbers
from detent.store.postgres.verb_base import VerbBase, runs, runs_each
from detent.store.workflows.postgres_steps import STEP_COLUMNS, step_row

__all__ = ["PostgresWorkflowLists"]

_WORKFLOW = WorkflowRow.__struct_fields__
_SIGNAL = SignalRow.__struct_fields__
_WAIT = WaitRow.__struct_fields__
_GROUP = ChildGroupRow.__struct_fields__
_GET = f"SELECT {', '.join(_WORKFLOW)} FROM detent.workflow_get_v1(%s::bigint[])"
_ARGUMENTS = "SELECT * FROM detent.workflow_arguments_v1(%s::bigint)"
_LIST = """
SELECT job_id, fits
  FROM detent.workflow_list_v1(%s::text, %s::integer, %s::text, %s::boolean, %s::text, %s::timestamptz, %s::bigint,
                               %s::integer)
"""
_STEPS = f"""
SELECT {STEP_COLUMNS}
  FROM detent.step_list_v1(%s::bigint, %s::integer, %s::timestamptz, %s::text, %s::integer)
"""
_SIGNALS = f"SELECT {', '.join(_SIGNAL)} FROM detent.signal_list_v1(%s::bigint, %s::bigint, %s::integer, %s::boolean)"
_WAITS = f"""
SELECT {", ".join(_WAIT)}, is_parked
  FROM detent.wait_list_v1(%s::bigint, %s::text, %s::text, %s::bigint, %s::integer, %s::integer)
"""
_GROUPS = f"SELECT {', '.join(_GROUP)} FROM detent.child_groups_v1(%s::bigint)"
_CHILDREN = """
SELECT * FROM detent.child_list_v1(%s::bigint, %s::text, %s::text, %s::bigint, %s::integer)
"""
_VERSIONS = "SELECT task, version, workflows FROM detent.workflow_versions_v1(%s::text)"


def workflow_get(ids: Sequence[int]) -> Statement[list[WorkflowRow | None]]:
    def decode(rows: Sequence[Row]) -> list[WorkflowRow | None]:
        found = {row[0]: WorkflowRow(**named(_WORKFLOW, row)) for row in rows}
        return [found.get(job_id) for job_id in ids]

    return Statement(_GET, (numbers(ids),), decode, writes=False)


def workflow_arguments(job_id: int) -> Statement[list[str]]:
    return Statement(_ARGUMENTS, (job_id,), lambda rows: [row[0] for row in rows], writes=False)


def workflow_list(chosen: WorkflowSearch, *, before: int = 2**63 - 1, limit: int = 1000) -> Statement[WorkflowPage]:
    def decode(rows: Sequence[Row]) -> WorkflowPage:
        return WorkflowPage([job_id for job_id, fits in rows if fits], rows[-1][0] if len(rows) == limit else None)

    since = None if chosen.since is None else moment(chosen.since, field="since")
    about = (chosen.task, chosen.version, chosen.state, chosen.parked, chosen.tenant, since)
    return Statement(_LIST, (*about, before, limit), decode, writes=False)


def step_list(
    job_id: int,
    *,
    generation: int | None = None,
    at: datetime | None = None,
    after: str | None = None,
    limit: int = 1000,
) -> Statement[StepPage]:
    def decode(rows: Sequence[Row]) -> StepPage:
        steps = [step_row(row) for row in rows]
        return StepPage(steps[:limit], steps[limit - 1].path if len(steps) > limit else None)

    params = (job_id, generation, None if at is None else moment(at, field="at"), after or "", limit + 1)
    return Statement(_STEPS, params, decode, writes=False)


def signal_list(job_id: int, *, after: int = 0, limit: int = 1000, unread: bool = False) -> Statement[list[SignalRow]]:
    def decode(rows: Sequence[Row]) -> list[SignalRow]:
        return [SignalRow(**named(_SIGNAL, row)) for row in rows]

    return Statement(_SIGNALS, (job_id, after, limit, unread), decode, writes=False)


def wait_list(
    *,
    job_id: int | None = None,
    signal: str | None = None,
    tenant: str | None = None,
    after: tuple[int, int] = (0, 0),
    limit: int = 100,
) -> Statement[WaitPage]:
    def decode(rows: Sequence[Row]) -> WaitPage:
        found = [WaitRow(**named(_WAIT, row[:-1])) for row in rows if row[-1]]
        return WaitPage(found, (rows[-1][0], rows[-1][1]) if len(rows) == limit else None)

    return Statement(_WAITS, (job_id, signal, tenant, *after, limit), decode, writes=False)


def child_groups(parent_id: int) -> Statement[list[ChildGroupRow]]:
    def decode(rows: Sequence[Row]) -> list[ChildGroupRow]:
        return [ChildGroupRow(**named(_GROUP, row)) for row in rows]

    return Statement(_GROUPS, (parent_id,), decode, writes=False)


def child_list(
    parent_id: int, *, path: str | None = None, state: str | None = None, after_id: int = 0, limit: int = 1000
) -> Statement[list[int]]:
    params = (parent_id, path, state, after_id, limit)
    return Statement(_CHILDREN, params, lambda rows: [row[0] for row in rows], writes=False)


def workflow_versions(task: str | None = None) -> Statement[list[VersionCount]]:
    return Statement(_VERSIONS, (task,), lambda rows: [VersionCount(*row) for row in rows], writes=False)


class PostgresWorkflowLists(VerbBase):
    """The verbs that read."""

    workflow_get = runs_each(workflow_get)
    workflow_arguments = runs(workflow_arguments)
    workflow_list = runs(workflow_list)
    step_list = runs(step_list)
    signal_list = runs(signal_list)
    wait_list = runs(wait_list)
    child_groups = runs(child_groups)
    child_list = runs(child_list)
    workflow_versions = runs(workflow_versions)
