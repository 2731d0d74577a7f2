"""Actions on several jobs: those with given ids, or all that match a filter."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import click
import msgspec

from detent.cli import output
from detent.cli.failures import OK, exit_code, print_error
from detent.cli.options import is_filtered
from detent.cli.session import Session
from detent.client.job_verbs import check_id
from detent.client.operation import Operation
from detent.errors import DatabaseError, Refused

__all__ = ["act_on_ids", "act_on_jobs", "act_on_matches", "show_operation"]

_LONG_LIST = 100
_LONG_OPERATION = 1000
_POSSIBLE_STATES = {
    "cancel": ("pending", "running"),
    "retry": ("failed", "quarantined", "cancelled"),
    "discard": ("failed", "quarantined"),
    "move": ("pending",),
}
_ONLY_IF_NAMED = {("retry", "cancelled")}
"""States that an action leaves alone unless `--state` names them: a person has cancelled those jobs."""


class _Outcome(msgspec.Struct):
    """What an action did to one job: its state now, or the reason why it was refused."""

    id: str
    state: str | None
    error: str | None


def act_on_jobs(
    session: Session,
    action: str,
    ids: Sequence[str],
    reason: str | None,
    states: Mapping[str, str],
    more: Mapping[str, Any] | None = None,
    **chosen: Any,
) -> int:
    """Act on the jobs with these ids, or on all that match the filters, and return the exit code. `states` replaces the
    names of states in the answer for people. `more` are further arguments of the action."""
    asked = {"reason": reason, **(more or {})}
    if bool(ids) == is_filtered(chosen):
        raise click.UsageError("Give either job ids or a filter (--state, --task, --queue, --tenant, …).")
    if not ids:
        return act_on_matches(session, action, reason, more=more, **chosen)
    if chosen["dry_run"]:
        raise click.UsageError("--dry-run goes with a filter, not with job ids.")
    with session.open() as app:
        return act_on_ids(session, ids, lambda one: getattr(app.jobs.get(one), action)(**asked).state, states)


def act_on_ids(
    session: Session, ids: Sequence[str], act: Callable[[str], str], states: Mapping[str, str] | None = None
) -> int:
    """Call `act` for each job, print the state that it returns, and return the exit code of the first refusal.

    An invalid id is refused before anything is done. All jobs are tried before anything is printed, so a reader that
    closes the pipe stops nothing half-way. If the database is lost, it ends after the answers so far.
    """
    outcomes: list[_Outcome] = []
    code, lost = OK, None
    checked = [str(check_id(one)) for one in ids]
    hidden = len(ids) < _LONG_LIST or not sys.stderr.isatty()
    with click.progressbar(checked, file=sys.stderr, hidden=hidden) as bar:
        for job_id in bar:
            try:
                outcomes.append(_Outcome(job_id, act(job_id), None))
            except Refused as error:
                outcomes.append(_Outcome(job_id, None, str(error)))
                code = code or exit_code(error)
            except DatabaseError as error:
                lost = error
                break
    if lost is not None and not outcomes:
        raise lost
    if session.json:
        output.print_json(output.records(outcomes))
    for outcome in outcomes:
        if outcome.error is not None:
            print_error(outcome.error)
        elif not session.json:
            output.print_text(f"job {outcome.id}: {(states or {}).get(outcome.state or '', outcome.state)}")
    if lost is not None:
        raise lost
    return code


def act_on_matches(
    session: Session,
    action: str,
    reason: str | None,
    *,
    state: str | None,
    dry_run: bool,
    yes: bool,
    more: Mapping[str, Any] | None = None,
    **filters: Any,
) -> int:
    """Act on all jobs that match the filters: count them, ask, and run one operation for each state in which the action
    is possible. `more` are further arguments, such as the queue of a move."""
    possible = _POSSIBLE_STATES[action]
    if state is not None and state not in possible:
        raise click.UsageError(f"{action} is possible for jobs that are {', '.join(possible)}, not {state}.")
    states = [one for one in possible if (action, one) not in _ONLY_IF_NAMED] if state is None else [state]
    with session.open() as app:
        matching = [app.jobs.where(**filters, state=one) for one in states]
        counts = [jobs.count() for jobs in matching]
        count = sum(counts)
        if dry_run:
            session.answer({"would_affect": count}, f"would affect {count}")
            return OK
        operations: list[Operation] = []
        if count:
            session.confirm(f"{action} {output.count_of(count, 'job')}", yes=yes)
        else:
            output.print_note(f"no jobs to {action}")
        for jobs, affected in zip(matching, counts, strict=True):
            if affected:
                operations.append(getattr(jobs, action)(reason=reason, **more or {}))
                _run(operations[-1])
                if not session.json:
                    show_operation(session, operations[-1])
        if session.json:
            output.print_json([output.to_object(one.row) for one in operations])
    return OK


def _run(operation: Operation) -> None:
    hidden = operation.row.until_id < _LONG_OPERATION or not sys.stderr.isatty()
    with click.progressbar(length=operation.row.until_id, file=sys.stderr, hidden=hidden) as bar:
        while operation.state == "running":
            before = operation.row.after_id
            bar.update(operation.step().row.after_id - before)


def show_operation(session: Session, operation: Operation) -> None:
    """Print how far an operation is."""
    refused = f", {operation.refused} refused" if operation.refused else ""
    session.answer(
        output.to_object(operation.row),
        f"operation {operation.id}: {operation.row.action} {operation.state}, {operation.changed} changed{refused}",
    )
