"""Waiting on PostgreSQL: what has arrived, parking, and waking up."""

from __future__ import annotations

from collections.abc import Sequence

from detent.errors import DetentError, LeaseLost
from detent.model.workflow_records import Arrived, CancelFound, NewStep, NewWait, Park, Parked, Pending
from detent.store.postgres.statement import Row, Statement, flags, numbers, texts, times, utc
from detent.store.postgres.verb_base import VerbBase, requeues, runs, runs_each
from detent.store.workflows.postgres_steps import flags_of, ran_us
from detent.store.workflows.rules import arrived_again

__all__ = ["PostgresWaits"]

_LOOK = """
SELECT ord, answer, n, kind, value, at, instead
  FROM detent.wait_look_v1(%s::bigint[], %s::integer[], %s::boolean[], %s::timestamptz[], %s::bigint[], %s::integer[],
                           %s::integer[], %s::integer[], %s::text[], %s::text[], %s::boolean[],
                           %s::integer[], %s::integer[], %s::text[], %s::integer[], %s::text[], %s::text[],
                           %s::bigint[], %s::text[], %s::text[], %s::integer[], %s::text[])
"""
_PARK = """
SELECT ord, instead, cancel
  FROM detent.workflow_park_v1(%s::bigint[], %s::integer[], %s::integer[], %s::integer[], %s::timestamptz[], %s::text[],
                               %s::bigint[], %s::integer[], %s::text[], %s::text[], %s::boolean[], %s::text,
                               %s::boolean[], %s::text[])
"""
_CONTINUE = "SELECT detent.workflow_continue_v1(%s::bigint, %s::integer, %s::text, %s::text)"
_WAKE = "SELECT detent.workflow_wake_v1(%s::integer)"


def wait_look(items: Sequence[NewWait]) -> Statement[list[Arrived | Pending | DetentError]]:
    # The server goes through them by job: this is the order in which all lock jobs.
    order = sorted(range(len(items)), key=lambda n: items[n].job_id)
    by_job = [items[n] for n in order]
    steps: list[NewStep] = []
    for item in by_job:
        steps += item.steps
        steps += [step for step in (item.outcome, item.holds) if step is not None]

    def decode(rows: Sequence[Row]) -> list[Arrived | Pending | DetentError]:
        answers = {order[row[0] - 1]: _looked(by_job[row[0] - 1], row) for row in rows}
        return [answers[n] for n in range(len(items))]

    params = (
        numbers(item.job_id for item in by_job),
        numbers(item.attempt for item in by_job),
        flags(item.chooses for item in by_job),
        times((item.until for item in by_job), field="until"),
        numbers(None if item.lasts is None else round(item.lasts * 1_000_000) for item in by_job),
        numbers(len(item.on) for item in by_job),
        numbers(len(item.steps) for item in by_job),
        numbers((item.outcome is not None) + 2 * (item.holds is not None) for item in by_job),
        texts(one.kind for item in by_job for one in item.on),
        texts(one.name for item in by_job for one in item.on),
        flags(one.settled for item in by_job for one in item.on),
        numbers(step.version for step in steps),
        numbers(step.generation for step in steps),
        texts(step.path for step in steps),
        numbers(step.seq for step in steps),
        texts(step.kind for step in steps),
        texts(step.value for step in steps),
        numbers(map(ran_us, steps)),
        texts(step.scope for step in steps),
        texts(step.fingerprint for step in steps),
        numbers(map(flags_of, steps)),
        texts(step.error for step in steps),
    )
    return Statement(_LOOK, params, decode)


def _looked(item: NewWait, row: Row) -> Arrived | Pending | DetentError:
    _, answer, n, kind, value, at, instead = row
    if instead is not None:
        return LeaseLost(item.job_id, item.attempt, instead)
    if answer == "pending":
        return Pending(item.job_id, item.attempt, None if at is None else utc(at))
    if answer == "again":
        return arrived_again(item.job_id, item.attempt, kind, value, utc(at))
    return Arrived(item.job_id, item.attempt, n, kind, value, utc(at))


def workflow_park(items: Sequence[Park], worker: str) -> Statement[list[Parked | CancelFound | DetentError]]:
    order = sorted(range(len(items)), key=lambda n: items[n].job_id)
    by_job = [items[n] for n in order]

    def decode(rows: Sequence[Row]) -> list[Parked | CancelFound | DetentError]:
        answers: list[Parked | CancelFound | DetentError] = [Parked(item.job_id, item.attempt) for item in items]
        for place, instead, cancel in rows:
            item = by_job[place - 1]
            found = CancelFound(item.job_id, item.attempt)
            answers[order[place - 1]] = found if cancel else LeaseLost(item.job_id, item.attempt, instead)
        return answers

    params = (
        numbers(item.job_id for item in by_job),
        numbers(item.attempt for item in by_job),
        numbers(item.version for item in by_job),
        numbers(item.generation for item in by_job),
        times((item.until for item in by_job), field="until"),
        texts(item.parked_for for item in by_job),
        numbers(None if item.begun_after is None else round(item.begun_after * 1_000_000) for item in by_job),
        numbers(len(item.on) for item in by_job),
        texts(one.kind for item in by_job for one in item.on),
        texts(one.name for item in by_job for one in item.on),
        flags(one.settled for item in by_job for one in item.on),
        worker,
        flags(item.undoes for item in by_job),
        texts(item.news for item in by_job),
    )
    return Statement(_PARK, params, decode)


def workflow_continue(job_id: int, attempt: int, payload: str, worker: str) -> Statement[Parked | DetentError]:
    def decode(rows: Sequence[Row]) -> Parked | DetentError:
        instead = rows[0][0]
        return Parked(job_id, attempt) if instead is None else LeaseLost(job_id, attempt, instead)

    return Statement(_CONTINUE, (job_id, attempt, payload, worker), decode)


def workflow_wake(limit: int) -> Statement[int]:
    return Statement(_WAKE, (limit,), lambda rows: int(rows[0][0]))


class PostgresWaits(VerbBase):
    """`wait_look`, `workflow_park`, `workflow_continue` and `workflow_wake`."""

    wait_look = runs_each(wait_look)
    workflow_park = requeues(runs_each(workflow_park))
    workflow_continue = requeues(runs(workflow_continue))
    workflow_wake = requeues(runs(workflow_wake))
