"""`detent move`: move a whole database into another one."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

import click

from detent.cli import output
from detent.cli.command import Command
from detent.cli.failures import OK
from detent.cli.options import flag, option, reason_option, yes_option
from detent.cli.session import Session
from detent.model.clock import SystemClock
from detent.model.move_records import MoveProgress, MoveReport
from detent.model.terminal_text import line

if TYPE_CHECKING:
    from detent.store.contract import Store

__all__ = ["move"]

_LABEL = 44


@click.command(cls=Command)
@option("--from", "Database to move.", "URL", to="source", required=True)
@option("--to", "Database to move it into: an empty one. It gets the schema if it has none.", "URL", to="target")
@flag("--cancel", "Undo a move that has not ended: open the database of --from again.")
@flag("--force", "Do not check the source first, and move violations of invariants that it has.")
@yes_option
@reason_option
@click.pass_obj
def move(
    session: Session, source: str, target: str | None, cancel: bool, force: bool, yes: bool, reason: str | None
) -> int:
    """Move a whole database into another one, with its whole record.

    From SQLite to PostgreSQL, back, or between two of a kind. Jobs may wait, and workflows may be parked: they continue
    in the target. Drain the workers first. The source is closed before the first row is copied, and stays closed: what
    would write to it is refused and told where it has moved. The target opens when it has everything and `verify` has
    found nothing wrong.

    If it is interrupted, run it again: it continues. --cancel opens the source again, as long as the move has not
    ended. Your own tables are not moved, also those with an attached lifecycle.
    """
    if session.database is not None or session.app is not None:
        raise click.UsageError("It takes no --database and no --app: --from and --to name the databases.")
    if cancel:
        return _cancel(session, source, target, reason)
    if target is None:
        raise click.UsageError("Missing option '--to'.")
    return _move(session, source, target, force=force, yes=yes, reason=reason)


def _cancel(session: Session, source: str, target: str | None, reason: str | None) -> int:
    from detent.store.move.mover import cancel_move

    if target is not None:
        raise click.UsageError("--cancel goes with --from alone.")
    with _opened(source) as store:
        cancelled = cancel_move(store, session.actor_name, reason)
        does = "is open again" if cancelled else "is not moving"
        session.answer({"from": store.name, "cancelled": cancelled}, f"{line(store.name)} {does}")
    return OK


def _move(session: Session, source: str, target: str, *, force: bool, yes: bool, reason: str | None) -> int:
    from detent.store.move.mover import Mover

    with _opened(source) as here, _opened(target) as there:
        session.confirm(f"close {line(here.name)} and move it to {line(there.name)}", yes=yes)
        with _progress() as watch:
            actor = session.actor_name
            mover = Mover(here, there, SystemClock(), actor=actor, reason=reason, force=force, watch=watch)
            report = mover.run()
    _show(session, report)
    return OK


def _show(session: Session, report: MoveReport) -> None:
    rows = sum(report.tables.values())
    if session.json:
        output.print_json(
            {
                "from": report.source,
                "to": report.target,
                "rows": rows,
                "copied": report.copied,
                "seconds": round(report.seconds, 3),
                "tables": report.tables,
                "left_behind": list(report.left_behind),
            }
        )
        return
    columns = output.columns(("TABLE", lambda pair: pair[0]), ("ROWS", lambda pair: pair[1]))
    output.print_rows(report.tables.items(), columns)
    copied = f"{report.copied:,} of {rows:,} rows copied" if report.copied != rows else f"{rows:,} rows copied"
    output.print_note(f"{line(report.source)} has moved to {line(report.target)}: {copied} in {report.seconds:.1f} s")
    if report.left_behind:
        named = ", ".join(map(line, report.left_behind))
        output.print_note(f"Not moved, since they are yours: tables with an attached lifecycle ({named})")
    output.print_note("Not moved: your own tables. Give your programs the new URL, and run `detent migrate` with it")


@contextmanager
def _opened(url: str) -> Iterator[Store]:
    from detent.store.open import open_store

    with closing(open_store(url)) as store:
        yield store


@contextmanager
def _progress() -> Iterator[Callable[[MoveProgress], None]]:
    """On a terminal, show a bar: many rows take minutes."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    with click.progressbar(length=1, show_pos=True, file=sys.stderr) as bar:

        def show(progress: MoveProgress) -> None:
            bar.label = f"{progress.step:<{_LABEL}}"
            bar.length = max(bar.length or 1, progress.total)
            bar.update(max(0, progress.rows - bar.pos))
            bar.render_progress()

        yield show
