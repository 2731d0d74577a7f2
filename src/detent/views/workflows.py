"""Workflows as people look at them: lists, steps on record, and the tree of what a workflow has spawned."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec
from msgspec.structs import replace

from detent.errors import InvalidInput, NotFound
from detent.model.graph_records import GRAPH_TASK
from detent.model.records import JobRow
from detent.model.workflow_records import ChildGroupRow, JobTree, StepRow, TreeNode, Workflow, WorkflowRow
from detent.store.contract import Verbs
from detent.store.workflows.copy_rules import repeated_steps
from detent.store.workflows.rules import UNREAD_MAX
from detent.views.redaction import REDACTED

__all__ = ["shown_step", "steps_of", "steps_since", "tree_of", "unread_signals", "workflow_of", "workflows_of"]

_PAGE = 1000
NODES_MAX = 1000
"""Maximum number of jobs that a tree shows."""
CHILDREN_MAX = 100
"""Maximum number of children that a tree shows of one job."""


def workflows_of(verbs: Verbs, rows: Sequence[JobRow]) -> list[Workflow]:
    """Return jobs with what is on record about their workflows, in the same order."""
    ids = [row.id for row in rows]
    known = verbs.workflow_get(ids) if ids else []
    status = {one.job_id: one.status for one in verbs.job_details(ids)} if ids else {}
    return [_workflow(row, found, status.get(row.id)) for row, found in zip(rows, known, strict=True)]


def workflow_of(verbs: Verbs, row: JobRow) -> Workflow:
    """Return one workflow, with the number of its unread signals."""
    (found,) = workflows_of(verbs, [row])
    return replace(found, unread=len(unread_signals(verbs, row.id)))


def _workflow(row: JobRow, found: WorkflowRow | None, status: str | None) -> Workflow:
    return Workflow(
        id=row.id,
        task=row.task,
        queue=row.queue,
        tenant=row.tenant,
        state=_state(row, found),
        version=0 if found is None else found.version,
        generation=1 if found is None else found.generation,
        steps=0 if found is None else found.steps,
        attempt=row.attempt,
        created_at=row.created_at,
        finished_at=row.finished_at,
        error=row.error,
        parked_at=None if found is None else found.parked_at,
        parked_for=None if found is None else found.parked_for,
        due_at=None if found is None else found.due_at,
        parent_id=row.parent_id,
        root_id=row.id if found is None and row.parent_id is None else None if found is None else found.root_id,
        depth=0 if found is None else found.depth,
        forked_from=None if found is None else found.forked_from,
        undoing_since=None if found is None else found.undoing_since,
        undo_cause=None if found is None else found.undo_cause,
        undo_of=None if found is None else found.undo_of,
        undone_by=None if found is None else found.undone_by,
        undone_at=None if found is None else found.undone_at,
        status=status,
    )


def _state(row: JobRow, found: WorkflowRow | None) -> str:
    return "parked" if found is not None and found.parked_at is not None else row.state


def unread_signals(verbs: Verbs, job_id: int) -> list[str]:
    """Return the names of the signals that no step has taken, the oldest first."""
    return [one.name for one in verbs.signal_list(job_id, limit=UNREAD_MAX, unread=True)]


def steps_of(verbs: Verbs, job_id: int, *, at: datetime | None = None, generation: int | None = None) -> list[StepRow]:
    """Return the steps of a generation (None: the current one) that were on record at that time (None: now), in the
    order in which they were recorded. Values and errors of secret steps are left out."""
    rows: list[StepRow] = []
    after: str | None = None
    while True:
        page = verbs.step_list(job_id, generation=generation, at=at, after=after, limit=_PAGE)
        rows += map(shown_step, page.rows)
        after = page.next
        if after is None:
            return sorted(rows, key=lambda row: row.seq)


def steps_since(rows: list[StepRow], path: str) -> list[StepRow]:
    """Return those of all steps of a generation that a rewind to one of them would repeat. `InvalidInput`."""
    found = repeated_steps(rows, path)
    if found is None:
        last = ", ".join(repr(row.path) for row in rows[-5:] if "~" not in row.path)
        raise InvalidInput("since", repr(path)[:80], f"a step on record; the last ones are {last or 'none'}")
    return found


def shown_step(row: StepRow) -> StepRow:
    """Return a step as it may be shown: without its value if that is secret."""
    if row.secret:
        hidden = f'"{REDACTED}"'
        return replace(row, value=row.value and hidden, error=row.error and REDACTED, fingerprint=None)
    return row if row.error is None else replace(row, error=_error_text(row.error))


def _error_text(text: str) -> str:
    """Return a recorded error as people know it: its class and its message."""
    try:
        found = msgspec.json.decode(text, type=dict[str, str])
        return f"{found['name']}: {found['message']}"
    except (msgspec.DecodeError, KeyError):
        return text


def tree_of(verbs: Verbs, job_id: int) -> JobTree:
    """Return a job and everything below it, at most 1,000 jobs and 100 children of each. `NotFound`."""
    (top,) = verbs.job_get([job_id])
    if top is None:
        raise NotFound("job", str(job_id))
    return _Tree(verbs).read(top)


class _Tree:
    """A tree that is being read, level by level."""

    def __init__(self, verbs: Verbs) -> None:
        self._verbs = verbs
        self._children: dict[int, list[TreeNode]] = {}
        self._groups: list[ChildGroupRow] = []
        self._left = NODES_MAX
        self._complete = True

    def read(self, top: JobRow) -> JobTree:
        """Return the tree below a job."""
        (known,) = self._verbs.workflow_get([top.id])
        first = _node(top, known, 0, None)
        level = [first]
        while level:
            level = [child for node in level for child in self._below(node)]
        nodes: list[TreeNode] = []
        self._collect(first, nodes)
        root = top.id if known is None else known.root_id
        return JobTree(root_id=root, nodes=nodes, groups=self._groups, complete=self._complete)

    def _below(self, node: TreeNode) -> list[TreeNode]:
        """Read the children of a job; return those that may have children themselves."""
        most = min(CHILDREN_MAX, self._left)
        ids = self._verbs.child_list(node.id, limit=most + 1)
        if not ids:
            return []
        self._complete = self._complete and len(ids) <= most
        ids = ids[:most]
        groups = self._verbs.child_groups(node.id)
        self._groups += groups
        rows = [row for row in self._verbs.job_get(ids) if row is not None]
        known = self._verbs.workflow_get([row.id for row in rows])
        names = self._names(node, len(ids))
        found = [
            _node(row, one, node.depth + 1, names.get(row.id) or _path(groups, row.id))
            for row, one in zip(rows, known, strict=True)
        ]
        self._children[node.id] = found
        self._left -= len(found)
        return [child for child, one in zip(found, known, strict=True) if one is not None]

    def _names(self, node: TreeNode, most: int) -> dict[int, str]:
        """Return the names of the first nodes of a graph by their jobs; nothing for any other job."""
        if node.task != GRAPH_TASK:
            return {}
        return {one.job_id: one.name for one in self._verbs.node_list(node.id, limit=most)}

    def _collect(self, node: TreeNode, nodes: list[TreeNode]) -> None:
        nodes.append(node)
        for child in self._children.get(node.id, ()):
            self._collect(child, nodes)


def _node(row: JobRow, found: WorkflowRow | None, depth: int, path: str | None) -> TreeNode:
    return TreeNode(
        id=row.id,
        parent_id=row.parent_id,
        depth=depth,
        path=path,
        task=row.task,
        state=_state(row, found),
        parked_for=None if found is None else found.parked_for,
        error=row.error,
    )


def _path(groups: Sequence[ChildGroupRow], job_id: int) -> str | None:
    for group in groups:
        if group.first_id <= job_id < group.first_id + group.total:
            return group.path
    return None
