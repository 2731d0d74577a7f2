"""The plan of a repair: what to do about every broken invariant, decided from the records before anything is written.

If the records of a job contradict each other, or its commit would have to change, the job is left to a person, with
the reason.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from detent.model.records import RepairStep, Violation
from detent.store.repair.database import LogLine, RepairDatabase
from detent.store.repair.job_projection import Contradiction, Facts, Job, Key, Projection, rebuild, spared_by_record

__all__ = ["Group", "Step", "counts_wrongly", "plan"]

JOBS_AT_ONCE_MAX = 500

# Invariants about the records themselves. If one is broken, its job is not rebuilt from them.
IN_DOUBT = {
    "cancelled_was_requested": "the request is not on record, and a record is never rewritten",
    "commit_happens_once": "two commits of one job: a person must find out what happened",
    "execution_fits_its_outcome": "the record contradicts itself, and a record is never rewritten",
    "log_follows_the_record": "the record contradicts itself, and a record is never rewritten",
    "log_moves_are_declared": "the log holds a move that is not declared, and a record is never rewritten",
    "rows_are_unique": "two rows stand where one may: a person must choose",
    "succeeded_is_final": "something is on record after the success, and a record is never rewritten",
}
# Invariants that a rebuild does not repair; the rest of the job is rebuilt.
BEYOND_REPAIR = {
    "definitions_are_in_place": "Detent did not install it, or cannot install it again by itself: its owner decides",
    "events_are_complete": "a lost line is not on record anywhere else",
    "no_job_is_stuck": "nothing to rebuild: the reaper of any worker ends the attempt",
    "horizons_are_past": "a horizon is on record, and a record is never rewritten",
    "no_row_is_orphaned": "its job is gone, and a record is never removed",
    "checks_hold": "the records do not say what it should be",
    "batch_times_are_in_order": "the time is on record as it is, and a record is never rewritten",
    "storage_is_sound": "pages of the database are damaged: restore a backup",
    "times_are_in_order": "the time is on record as it is, and a record is never rewritten",
}
WRONG_COUNTS = "the view job_counts, which adds up the counts, is not as it was defined"
SCHEMA = ("trigger", "function", "constraint", "index", "table", "sequence")


Act = Callable[[RepairDatabase], None]


@dataclass(frozen=True, slots=True)
class Step:
    """What is shown; if it can be done, also its line in the log and the function that does it."""

    shown: RepairStep
    line: LogLine | None = None
    act: Act | None = None


Group = list[Step]  # applied together or not at all


def plan(database: RepairDatabase) -> Iterator[Group]:
    """Yield the steps: guards first, then jobs by id, then what belongs to no job. Nothing is rebuilt from damaged
    pages."""
    found = database.violations()
    if any(violation.invariant == "storage_is_sound" and violation.entity == "file" for violation in found):
        yield from ([_left(violation, BEYOND_REPAIR["storage_is_sound"])] for violation in found)
        return
    if any(counts_wrongly(violation) for violation in found):
        yield from ([_left(one, WRONG_COUNTS)] for one in found if one.invariant == "finished_counts_equal_jobs")
        found = [one for one in found if one.invariant != "finished_counts_equal_jobs"]
    of_job, others, keys = _sorted_out(database, found)
    yield from ([_schema(database, violation)] for violation in others if violation.entity in SCHEMA)
    ids = sorted(of_job)
    for start in range(0, len(ids), JOBS_AT_ONCE_MAX):
        chunk = ids[start : start + JOBS_AT_ONCE_MAX]
        there = {facts.job.id: facts for facts in database.facts(chunk)}
        for job_id in chunk:
            if job_id in there:
                yield _of_job(there[job_id], of_job[job_id])
            else:
                yield from ([_without_job(violation, keys)] for violation in of_job[job_id])
    yield from ([_without_job(violation, keys)] for violation in others if violation.entity not in SCHEMA)


def counts_wrongly(what: Violation | RepairStep) -> bool:
    """Return whether the view that adds up the counts of jobs is damaged; then jobs are not counted again."""
    name = what.entity_id.removeprefix("detent_")
    return (what.invariant, what.entity, name) == ("definitions_are_in_place", "view", "job_counts")


def _sorted_out(
    database: RepairDatabase, found: Sequence[Violation]
) -> tuple[dict[int, list[Violation]], list[Violation], dict[str, Key]]:
    """Return the violations about a job, by its id; the others; the keys that they name, by name."""
    lines = database.jobs_of_lines([int(v.entity_id) for v in found if v.entity == "transition_log"])
    held = [v.entity_id for v in found if v.invariant == "key_until_claim_is_of_a_pending_job"]
    keys = {f"{key.tenant}/{key.key}": key for key in database.keys_named(held)}
    of_job: dict[int, list[Violation]] = defaultdict(list)
    others = []
    for violation in found:
        match violation.entity:
            case "job" | "execution" | "event" | "ready" | "waiting" | "dead":
                of_job[int(violation.entity_id.partition("/")[0])].append(violation)
            case "transition_log" if int(violation.entity_id) in lines:
                of_job[lines[int(violation.entity_id)]].append(violation)
            case "job_key" if violation.entity_id in keys:
                of_job[keys[violation.entity_id].job_id].append(violation)
            case _:
                others.append(violation)
    return of_job, others, keys


def _schema(database: RepairDatabase, violation: Violation) -> Step:
    kind, name = violation.entity, violation.entity_id
    if statement := database.owner_must(kind, name):
        return _left(violation, f"for its owner: {statement}")
    does = f"let {name} go on above all numbers in use" if kind == "sequence" else f"install {kind} {name} again"
    shown = RepairStep(violation.invariant, kind, name, does)
    return Step(shown, _line(shown, "broken", "restored"), lambda database: database.restore(kind, name))


def _without_job(violation: Violation, keys: dict[str, Key]) -> Step:
    """Return the step for a row whose job is gone: queue rows, dead letters and keys are deleted, records are kept."""
    if violation.invariant == "batch_counts_equal_targets":
        return _recounting(violation)
    if violation.invariant == "child_counts_equal_children":
        parent_id, _, path = violation.entity_id.partition("/")
        shown = RepairStep(violation.invariant, violation.entity, violation.entity_id, "count its children anew")
        line = _line(shown, "miscounted", "counted")
        return Step(shown, line, lambda database: database.count_children(int(parent_id), path))
    if violation.invariant == "graph_follows_its_nodes":
        number = int(violation.entity_id.partition("/")[0])
        shown = RepairStep(
            violation.invariant, violation.entity, violation.entity_id, "count the nodes of its graph anew"
        )
        line = _line(shown, "miscounted", "counted")
        is_graph = violation.entity == "graph"
        return Step(shown, line, lambda database: database.count_graph(number, is_graph=is_graph))
    if violation.invariant == "unread_signals_are_listed":
        job_id = int(violation.entity_id.partition("/")[0])
        shown = RepairStep(violation.invariant, violation.entity, violation.entity_id, "list its unread signals anew")
        return Step(shown, _line(shown, "mislisted", "listed"), lambda database: database.list_unread(job_id))
    if violation.invariant == "finished_counts_equal_jobs":
        shown = RepairStep(violation.invariant, violation.entity, violation.entity_id, "count its jobs anew")
        return Step(shown, _line(shown, "miscounted", "counted"), lambda database: database.count_finished())
    if violation.invariant == "totals_equal_counts":
        shown = RepairStep(violation.invariant, violation.entity, violation.entity_id, "add up the counts anew")
        return Step(shown, _line(shown, "miscounted", "counted"), lambda database: database.total_finished())
    if violation.invariant == "rates_equal_figures":
        shown = RepairStep(violation.invariant, violation.entity, violation.entity_id, "take it from the figures")
        return Step(shown, _line(shown, "miscounted", "counted"), lambda database: database.rate_hours())
    if violation.invariant == "limit_slots_are_current":
        return _freeing(violation)
    if violation.invariant == "lists_find_every_job":
        shown = RepairStep(violation.invariant, violation.entity, violation.entity_id, "list it anew")
        return Step(shown, _line(shown, "missing", "listed"), lambda database: database.list_jobs())
    act = _removal(violation, keys)
    if act is None:
        return _left(violation)
    shown = RepairStep(violation.invariant, violation.entity, violation.entity_id, "remove it: its job is gone")
    return Step(shown, _line(shown, "orphaned", "removed"), act)


def _recounting(violation: Violation) -> Step:
    run_id = int(violation.entity_id)
    shown = RepairStep(violation.invariant, "batch_run", violation.entity_id, "count its targets anew")
    # An entity of its own, because the lines of the run are its moves.
    line = replace(_line(shown, "miscounted", "counted"), entity="batch_counts")
    return Step(shown, line, lambda database: database.recount(run_id))


def _freeing(violation: Violation) -> Step:
    limit_key, _, job_id = violation.entity_id.rpartition("/")
    shown = RepairStep(
        violation.invariant, violation.entity, violation.entity_id, "free the slot: its attempt does not run"
    )
    return Step(shown, _line(shown, "held", "freed"), lambda database: database.free_slot(limit_key, int(job_id)))


def _removal(violation: Violation, keys: dict[str, Key]) -> Act | None:
    match violation.invariant, violation.entity:
        case "no_row_is_orphaned", "ready" | "waiting":
            return lambda database: database.unqueue(int(violation.entity_id))
        case "no_row_is_orphaned", "dead":
            return lambda database: database.remove_dead(int(violation.entity_id))
        case "key_until_claim_is_of_a_pending_job", _ if violation.entity_id in keys:
            return _giving_back(keys[violation.entity_id])
        case _:
            return None


def _giving_back(key: Key) -> Act:
    return lambda database: database.drop_key(key)


def _of_job(facts: Facts, found: list[Violation]) -> Group:
    doubted = [violation.invariant for violation in found if violation.invariant in IN_DOUBT]
    want = Contradiction(IN_DOUBT[doubted[0]]) if doubted else rebuild(facts)
    if isinstance(want, Contradiction):
        return [_left(violation, IN_DOUBT.get(violation.invariant, want.why)) for violation in found]
    steps = list(_rebuilding(facts, want))
    is_rebuilt = bool(steps)
    for violation in found:
        if violation.invariant == "checks_hold" and violation.entity == "job" and is_rebuilt:
            continue  # The rebuilt row satisfies its CHECKs, or the database refuses it.
        if violation.invariant in BEYOND_REPAIR:
            steps.append(_left(violation))
        elif violation.invariant == "spared_equals_record" and want.spared > spared_by_record(facts):
            steps.append(_left(violation, "spared only grows, and the record gives less"))
    return steps or [_left(violation) for violation in found]


def _rebuilding(facts: Facts, want: Projection) -> Iterator[Step]:
    """Yield the steps that make the row, the queue, the dead letters, the lease and the keys what the records say."""
    job = facts.job
    found = job.state

    def step(invariant: str, does: str, act: Act) -> Step:
        nonlocal found
        shown = RepairStep(invariant, "job", str(job.id), does)
        # The line of a job that turns out to be running comes before the attempt in flight.
        attempt = want.ended if want.state == "running" != found else want.attempt
        line = _line(shown, found, want.state, job, attempt)
        found = want.state
        return Step(shown, line, act)

    if changes := list(_changes(job, want)):
        does = ", ".join(text for _, text in changes)
        yield step(changes[0][0], f"set {does}", lambda database: database.set_job(job, want))
    if want.state == "pending":
        if not _is_queued_right(facts, want):
            holds_key = bool(facts.keys)
            yield step(
                "pending_is_queued_once",
                "give it its one place in the queue",
                lambda database: database.queue(job, want.due_at, holds_key),
            )
    else:
        if facts.queued:
            yield step("pending_is_queued_once", "take it out of the queue", lambda database: database.unqueue(job.id))
        for key in facts.keys:
            yield step(
                "key_until_claim_is_of_a_pending_job",
                f"give back the key {key.key}",
                _giving_back(key),
            )
    if want.state == "running" and not facts.leased:
        yield step(
            "running_is_leased", "give it an expired lease for the reaper", lambda database: database.lease(job.id)
        )
    reason = want.dead_reason
    if reason is not None and facts.dead != (job.id, job.tenant, job.queue, job.task):
        yield step(
            "quarantined_is_dead",
            f"put it among the dead letters: {reason}",
            lambda database: database.add_dead(job, reason, want.finished_at),
        )
    if reason is None and facts.dead is not None:
        yield step(
            "quarantined_is_dead", "take it from the dead letters", lambda database: database.remove_dead(job.id)
        )


def _changes(job: Job, want: Projection) -> Iterator[tuple[str, str]]:
    """Yield what is wrong in the row: the invariant that finds it, and the change in words."""
    if job.state != want.state:
        yield "state_equals_record", f"state {job.state} → {want.state}"
    for name in ("attempt", "ended"):
        before, after = getattr(job, name), getattr(want, name)
        if before != after:
            yield "attempts_are_complete", f"{name} {before} → {after}"
    if job.spared != want.spared:
        yield "spared_equals_record", f"spared {job.spared} → {want.spared}"
    if job.committed_at != want.committed_at:
        yield "succeeded_is_committed", "committed_at from its record"
    if job.finished_at != want.finished_at:
        yield "finished_time_equals_record", "finished_at from its record"
    if job.due_at != want.due_at:
        yield "due_time_equals_record", "due_at from its record"
    if want.state == "running" and (job.lease_id is None or job.leased_at is None):
        yield "running_is_leased", "a lease of its own"


def _is_queued_right(facts: Facts, want: Projection) -> bool:
    job = facts.job
    if len(facts.queued) != 1:
        return False
    row = facts.queued[0]
    lane = (row.queue, row.task, row.tenant, row.limit_key, row.version, row.priority)
    right = lane == (job.queue, job.task, job.tenant, job.limit_key or "", job.version, job.priority)
    return right and row.at == want.due_at and row.expires_at == job.expires_at and (row.holds_key or not facts.keys)


def _left(violation: Violation, why: str | None = None) -> Step:
    """Return a step that is left to a person."""
    why = why or {**BEYOND_REPAIR, **IN_DOUBT}.get(violation.invariant, "the records do not say what it should be")
    return Step(RepairStep(violation.invariant, violation.entity, violation.entity_id, why, can=False))


def _line(shown: RepairStep, found: str, rebuilt: str, job: Job | None = None, attempt: int = 0) -> LogLine:
    metadata = json.dumps({"invariant": shown.invariant, "does": shown.does}, ensure_ascii=False)
    if job is None:
        return LogLine(shown.entity, shown.entity_id, found, rebuilt, metadata)
    return LogLine("job", str(job.id), found, rebuilt, metadata, job.id, attempt, job.tenant, job.correlation_id)
