"""Why a job is in its state, in one sentence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from detent.errors import NotFound, essence
from detent.model.limit_records import ChildrenLimit, LimitFilter, LimitRow
from detent.model.ops_records import OPS_TASK
from detent.model.records import JobRow, TransitionRow
from detent.model.service_records import WorkerRow
from detent.store.contract import Verbs
from detent.views.database_move import why_closed
from detent.views.graph_explanation import explain_graph, explain_node
from detent.views.workflow_explanation import explain_park, time_text

__all__ = ["explain", "paused_by"]

_ALIVE_WITHIN = 10.0
_LEFT_MAX = 1000
_ENDED_HOW = {
    "error": "failed",
    "expired": "lost its lease",
    "crashed": "crashed",
    "timed_out": "exceeded its time limit",
    "released": "was released",
    "snoozed": "snoozed",
    "throttled": "was throttled",
    "parked": "was parked",
    "cancelled": "was cancelled",
    "unknown": "ended with an unknown effect",
}


def explain(verbs: Verbs, job_id: int) -> str:
    """Return why a job is in its state, in one sentence. `NotFound`."""
    row = _row(verbs, job_id)
    if row.finished_at is None and (closed := why_closed(verbs)) is not None:
        return closed
    if told := explain_graph(verbs, row):
        return told
    match row.state:
        case "pending":
            return _why_pending(verbs, row)
        case "running":
            return _why_running(verbs, row)
        case "succeeded":
            return f"it succeeded with {_attempt(row)}{_undone(verbs, row)}"
        case "cancelled":
            return _why_cancelled(verbs, row) + _undone(verbs, row)
        case _:
            dead = "dead (quarantined)" if row.state == "quarantined" else row.state
            said = essence(row.error) or "no error recorded"
            undone = _undone(verbs, row)
            # The records of an undo count as progress, so afterwards no attempt seems to be used up.
            attempt = f"attempt {row.attempt}" if undone else _attempt(row)
            return f"it is {dead} after {attempt}: {said}{undone}"


def _undone(verbs: Verbs, row: JobRow) -> str:
    """Return what became of the steps of a workflow that has ended, if they were undone."""
    (found,) = verbs.workflow_get([row.id])
    if found is None:
        return ""
    if found.undo_of is not None:
        return f"; it undoes the steps of job {found.undo_of}"
    by = "" if found.undone_by is None else f" by job {found.undone_by}"
    if found.undone_at is not None:
        return f"; its steps were undone{by} on {time_text(found.undone_at)}"
    return f"; its steps are being undone{by}" if by else ""


def _why_pending(verbs: Verbs, row: JobRow) -> str:
    asked = "" if row.cancel_requested_at is None else f"{_stop_request(row)}, and its steps are undone first; "
    return asked + _why_not_running(verbs, row)


def _why_not_running(verbs: Verbs, row: JobRow) -> str:
    if row.due_at > verbs.now():
        if told := explain_park(verbs, row) or explain_node(verbs, row):
            return told
        return f"it waits for its time: due at {row.due_at.isoformat()}{_after(verbs, row)}"
    paused = verbs.transitions("queue", row.queue)
    if paused and paused[-1].to_state == "paused":
        return f"its queue {row.queue!r} is paused by {paused[-1].actor}: {paused[-1].reason or 'no reason given'}"
    return _limit_without_room(verbs, row) or _awaited_worker(verbs, row)


def _after(verbs: Verbs, row: JobRow) -> str:
    """Return how and when the last attempt ended: the reason why a retry waits."""
    ended = [one for one in verbs.job_executions(row.id) if one.outcome is not None]
    if not ended:
        return ""
    last = ended[-1]
    at = f" at {last.aborted_at.isoformat()}" if last.aborted_at else ""
    said = f": {of}" if (of := essence(last.error)) else ""
    return f" after attempt {last.attempt}, which {_ENDED_HOW.get(last.outcome or '', 'ended')}{at}{said}"


def _limit_without_room(verbs: Verbs, row: JobRow) -> str | None:
    """Return which limit keeps a ready job waiting; None if none does."""
    now = verbs.now()
    for limit in _limits_of(verbs, row):
        if limit.held_at is not None:
            by = paused_by(verbs, limit.key)
            said = f" by {by.actor}: {by.reason or 'no reason given'}" if by else ""
            return f"its limit {limit.key!r} is paused{said}"
        if limit.open_until is not None and limit.open_until > now:
            return f"the breaker of its limit {limit.key!r} is open until {limit.open_until.isoformat()}"
        if limit.paused_until is not None and limit.paused_until > now:
            return f"its limit {limit.key!r} is paused until {limit.paused_until.isoformat()}"
        if limit.open_until is not None and limit.running:
            return f"the breaker of its limit {limit.key!r} is half open: one job tries, the others wait for it"
        if limit.concurrency_max is not None and limit.running >= limit.concurrency_max:
            if (group := ChildrenLimit.of_key(limit.key)) is not None:
                most = f"at most {limit.concurrency_max:,} children of step {group.path!r} of job {group.parent_id}"
                return f"{most} run at once, and {limit.running:,} are running"
            return f"its limit {limit.key!r} is full: {limit.running} of {limit.concurrency_max} are running"
        if limit.rate is not None and (cost := _cost_under(limit, row)) > 1 and limit.tokens + 1e-6 < cost:
            return f"its limit {limit.key!r} has {limit.tokens:.4g} of the {cost} tokens that it costs"
        if limit.rate is not None and limit.tokens < 1:
            return f"its limit {limit.key!r} is used up: {limit.rate:g} may start per {limit.per:g} s"
    return None


def paused_by(verbs: Verbs, key: str) -> TransitionRow | None:
    """Return the recorded transition with which an operator last paused a limit; None if it never was paused."""
    moves = verbs.transitions("limit", key)
    return next((move for move in reversed(moves) if move.to_state == "paused"), None)


def _limits_of(verbs: Verbs, row: JobRow) -> list[LimitRow]:
    """Return the limits that a job is under: that of its key or else of its task, and that of its queue."""
    keys = () if row.limit_key is None else (row.limit_key,)
    found = verbs.limit_list(LimitFilter(keys=keys, tasks=(row.task,), queues=(row.queue,)))
    limited = any(row.task in limit.tasks for limit in found)
    of_key = row.limit_key if limited else None
    return [
        limit
        for limit in found
        if row.queue in limit.queues or (row.task in limit.tasks if of_key is None else limit.key == of_key)
    ]


def _cost_under(limit: LimitRow, row: JobRow) -> float:
    """Return how many tokens of a limit the job needs to start; a limit of its queue counts it as one."""
    return 1 if row.queue in limit.queues or row.cost is None else min(row.cost, limit.burst)


def _awaited_worker(verbs: Verbs, row: JobRow) -> str:
    """Return what a ready job waits for: a free slot, a worker, or one that supports the version of a workflow."""
    waits = f"it is ready in queue {row.queue!r} and waits for"
    if row.task == OPS_TASK:
        return f"{waits} an ops worker that claims it"
    alive = [worker for worker in verbs.worker_list(_ALIVE_WITHIN) if not worker.stopping]
    knowing = [worker for worker in alive if row.task in worker.tasks]
    if not knowing:
        found = f"none of {len(alive)} alive does" if alive else "no worker is alive"
        return f"{waits} a worker that knows task {row.task!r}: {found}{_starting(alive)}"
    version = _version(verbs, row)
    able = [worker for worker in knowing if version is None or version in worker.versions.get(row.task, ())]
    if not able:
        others = _supported(knowing, row.task)
        return f"it began under version {version}, and no live worker supports that version ({others})"
    serving = [worker for worker in able if worker.queues is None or row.queue in worker.queues]
    if serving:
        return f"{waits} a free slot: {_workers(len(serving))} would take it"
    return f"{waits} a worker that serves it: {_workers(len(able))} would know task {row.task!r}, of other queues only"


def _starting(alive: Sequence[WorkerRow]) -> str:
    """Return how many of the workers cannot say yet which tasks they know: their processes are being started."""
    count = sum(not worker.tasks for worker in alive)
    if not count:
        return ""
    return ", and one of them is still starting" if count == 1 else f", and {count} of them are still starting"


def _version(verbs: Verbs, row: JobRow) -> int | None:
    """Return the version under which a workflow began; None if it has recorded nothing, and for any other job."""
    (begun,) = verbs.workflow_get([row.id])
    return None if begun is None else begun.version


def _supported(workers: Sequence[WorkerRow], task: str) -> str:
    """Return which versions of a workflow these workers support: `3 live workers support version 2`."""
    sets = Counter(tuple(sorted(worker.versions.get(task, ()))) for worker in workers)
    said = []
    for versions, count in sorted(sets.items()):
        who = "one live worker supports" if count == 1 else f"{count} live workers support"
        if len(versions) == 1:
            said.append(f"{who} version {versions[0]}")
        elif versions:
            said.append(f"{who} versions {', '.join(map(str, versions[:-1]))} and {versions[-1]}")
        else:
            said.append(f"{who} no version of it")
    return ", ".join(said)


def _workers(count: int) -> str:
    return "one worker" if count == 1 else f"{count} workers"


def _why_running(verbs: Verbs, row: JobRow) -> str:
    attempts = verbs.job_executions(row.id)
    held = attempts[-1] if attempts else None
    who = f"{held.worker!r} holds {_attempt(row)}" if held else f"{_attempt(row)} is in flight"
    if row.cancel_requested_at is not None:
        return f"{who}, and {_stop_request(row)}{_children_left(verbs, row)}"
    return f"{who} until {held.expires_at.isoformat()}" if held and held.expires_at else who


def _stop_request(row: JobRow) -> str:
    return f"{row.cancel_requested_by} asked for it to stop: {row.cancel_reason or 'no reason given'}"


def _children_left(verbs: Verbs, row: JobRow) -> str:
    """Return how much of the cancel of its children is left; nothing if there is none."""
    left = verbs.tree_cancel_count(row.id, _LEFT_MAX)
    if not left:
        return ""
    whose = "one job" if left == 1 else f"{left:,} jobs" if left < _LEFT_MAX else f"{left:,} jobs or more"
    return f"; the children of {whose} are still to be cancelled"


def _attempt(row: JobRow) -> str:
    """Return the number of the current attempt, and how many attempts count if some do not."""
    counted = f" ({row.attempt - row.spared} of {row.attempts_max} used up)" if row.spared else ""
    return f"attempt {row.attempt}{counted}"


def _why_cancelled(verbs: Verbs, row: JobRow) -> str:
    """Return who requested the cancel. If the job was running, its worker ended it, but did not request it."""
    lines = verbs.transitions("job", str(row.id))
    if not lines:
        return "it was cancelled (unrecorded)"
    last = lines[-1]
    if last.from_state == "running" and row.cancel_requested_at is not None:
        asked = f"cancel by {row.cancel_requested_by}: {row.cancel_reason or 'no reason given'}"
        return f"it was cancelled while attempt {row.attempt} ran ({asked}){_children_left(verbs, row)}"
    why = f"{last.trigger} by {last.actor}: {last.reason or 'no reason given'}"
    return f"it was cancelled ({why}){_children_left(verbs, row)}"


def _row(verbs: Verbs, job_id: int) -> JobRow:
    (row,) = verbs.job_get([job_id])
    if row is None:
        raise NotFound("job", str(job_id))
    return row
