"""What a parked workflow waits for, in one sentence."""

from __future__ import annotations

from datetime import UTC, datetime

from detent.errors import essence
from detent.model.limit_records import ChildrenLimit, LimitFilter
from detent.model.records import JobRow
from detent.model.workflow_records import ChildGroupRow, WaitRow, WorkflowRow
from detent.store.contract import Verbs
from detent.views.workflows import unread_signals

__all__ = ["explain_park", "time_text"]

_NAMES_MAX = 5


def explain_park(verbs: Verbs, row: JobRow) -> str | None:
    """Return what a parked workflow waits for; None if the job is not parked."""
    (found,) = verbs.workflow_get([row.id])
    if found is None or found.parked_at is None:
        return None
    waits = verbs.wait_list(job_id=row.id, limit=100).rows
    since = time_text(found.parked_at)
    if all(wait.kind == "time" for wait in waits):
        return f"it sleeps until {_until(found)}{_for(found)}, parked since {since}"
    until = ", without a time limit" if found.due_at is None else f", until {time_text(found.due_at)}"
    awaited = " or ".join(_awaited(verbs, row, waits))
    mailbox = _mailbox(verbs, row) if any(wait.kind == "signal" for wait in waits) else ""
    return f"it has been parked since {since} for {awaited}{until}{mailbox}"


def _until(found: WorkflowRow) -> str:
    return "it is woken" if found.due_at is None else time_text(found.due_at)


def _for(found: WorkflowRow) -> str:
    """Return why it sleeps, if that is more than a sleep."""
    return f" ({found.parked_for})" if found.parked_for and found.parked_for.startswith("retry") else ""


def _awaited(verbs: Verbs, row: JobRow, waits: list[WaitRow]) -> list[str]:
    groups = {group.path: group for group in verbs.child_groups(row.id)} if _has_children(waits) else {}
    found = [f"signal {wait.name!r}" for wait in waits if wait.kind == "signal"]
    for wait in waits:
        if wait.kind == "children" and wait.name in groups:
            found.append(_children(verbs, row, groups[wait.name]))
        elif wait.kind == "children":
            found.append(f"the children of step {wait.name!r}")
    return found


def _has_children(waits: list[WaitRow]) -> bool:
    return any(wait.kind == "children" for wait in waits)


def _children(verbs: Verbs, row: JobRow, group: ChildGroupRow) -> str:
    if group.total == 1:
        return _child(verbs, group.first_id)
    left = group.total - group.succeeded - group.failed
    about = f"{_at_once(verbs, group)}{_dead(verbs, row, group)}"
    return f"{left:,} of {group.total:,} children of step {group.path!r}{about}"


def _at_once(verbs: Verbs, group: ChildGroupRow) -> str:
    """Return how many of a group run, if it has a limit."""
    key = ChildrenLimit(group.parent_id, group.generation, group.path).key
    for limit in verbs.limit_list(LimitFilter(keys=(key,))):
        return f" ({limit.running:,} run, at most {limit.concurrency_max:,} at once)"
    return ""


def _dead(verbs: Verbs, row: JobRow, group: ChildGroupRow) -> str:
    """Return which children are quarantined: they need a person."""
    if group.dead == 0:
        return ""
    ids = verbs.child_list(row.id, path=group.path, state="quarantined", limit=_NAMES_MAX)
    more = f" and {group.dead - len(ids):,} more" if group.dead > len(ids) else ""
    are = "is" if group.dead == 1 else "are"
    return f", of which {', '.join(map(str, ids))}{more} {are} quarantined"


def _child(verbs: Verbs, child_id: int) -> str:
    (row,) = verbs.job_get([child_id])
    if row is None:
        return f"child {child_id}, which is not on record"
    said = f": {of}" if row.state == "quarantined" and (of := essence(row.error)) else ""
    (found,) = verbs.workflow_get([child_id])
    if found is not None and found.parked_at is not None:
        return f"child {child_id} ({row.task}), which is parked for {found.parked_for}"
    return f"child {child_id} ({row.task}), which is {row.state}{said}"


def _mailbox(verbs: Verbs, row: JobRow) -> str:
    names = unread_signals(verbs, row.id)
    others = list(dict.fromkeys(names))
    shown = ", ".join(map(repr, others[:_NAMES_MAX])) + (", …" if len(others) > _NAMES_MAX else "")
    return f"; {len(names):,} signal{'' if len(names) == 1 else 's'} in the mailbox{f' ({shown})' if names else ''}"


def time_text(moment: datetime) -> str:
    """Return a time as people read it, to the minute."""
    return f"{moment.astimezone(UTC):%A %Y-%m-%d %H:%M} UTC"
