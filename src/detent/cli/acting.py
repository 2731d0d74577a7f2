"""Doing one thing to many jobs: answers per job, confirmation where a filter chose them, one exit code."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence

import click
import msgspec

from detent.cli import render
from detent.cli.failures import OK, USAGE, CommandFailed, exit_code, say
from detent.cli.session import Session
from detent.client.moves import check_id
from detent.errors import DatabaseError, Refused

__all__ = ["Answer", "act_on", "confirm"]

Answer = Callable[[str], str]

_LONG = 100


class _Outcome(msgspec.Struct):
    """What became of one job: the state it is in now, or why it was left alone."""

    id: str
    state: str | None
    error: str | None


def act_on(session: Session, ids: Sequence[str], act: Answer, words: Mapping[str, str] | None = None) -> int:
    """Do it to each, say what became of each, and give the exit code of the first refusal.

    What is no id at all is refused before anything is done. All of them are tried before anything is written: a reader
    that leaves early stops nothing half-way. A database that is gone ends it, after the answers so far. `words` replace
    states for people.
    """
    outcomes: list[_Outcome] = []
    code, away = OK, None
    checked = [str(check_id(one)) for one in ids]
    with click.progressbar(checked, file=sys.stderr, hidden=not _shows_progress(len(ids))) as bar:
        for job_id in bar:
            try:
                outcomes.append(_Outcome(job_id, act(job_id), None))
            except Refused as error:
                outcomes.append(_Outcome(job_id, None, str(error)))
                code = code or exit_code(error)
            except DatabaseError as error:
                away = error
                break
    if away is not None and not outcomes:
        raise away
    if session.json:
        render.json_value(render.records(outcomes))
    for outcome in outcomes:
        if outcome.error is not None:
            say(outcome.error)
        elif not session.json:
            render.out(f"job {outcome.id}: {(words or {}).get(outcome.state or '', outcome.state)}")
    if away is not None:
        raise away
    return code


def _shows_progress(count: int) -> bool:
    return count >= _LONG and sys.stderr.isatty()


def confirm(session: Session, what: str, *, yes: bool) -> None:
    """Go on only after a yes: by `--yes`, or from somebody at a terminal. Nobody is asked who cannot answer."""
    if yes:
        return
    if not session.asks:
        raise CommandFailed(f"{what}: not without --yes, and there is no terminal to ask at; nothing was done", USAGE)
    click.confirm(f"{what}?", abort=True, err=True)
