"""`detent backup`: copy a SQLite database that is in use."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from detent.cli import output
from detent.cli.command import Command, with_app
from detent.cli.failures import FAILED, OK, CommandFailed
from detent.cli.options import flag
from detent.cli.session import Session
from detent.model.terminal_text import line

if TYPE_CHECKING:
    from detent.app.detent import Detent

__all__ = ["backup"]

_NAMED_MAX = 5


@click.command(cls=Command)
@click.argument("target", metavar="TO")
@flag("--force", "Keep the copy even if `verify` finds violations in it.")
@with_app
def backup(session: Session, app: Detent, target: str, force: bool) -> int:
    """Copy a SQLite database that is in use.

    TO is a new file. The copy is consistent: it has everything that was committed when the copy began. It is synced and
    checked as `detent verify` does, and gets its name only then. A file that exists is never replaced.

    Run `detent identities renew` on a copy before you work with it. PostgreSQL has its own tools: pg_dump and
    pg_basebackup.
    """
    began = app.clock.monotonic()
    with _progress() as watch:
        found = app.store.back_up(target, force=force, watch=watch)
    names = sorted({one.invariant for one in found})
    named = ", ".join(names[:_NAMED_MAX]) + (", …" if len(names) > _NAMED_MAX else "")
    violated = f"`verify` finds {output.count_of(len(found), 'violation')} in the copy ({named})"
    if found and not force:
        raise CommandFailed(f"no backup was made: {violated}; see `detent verify`, or add --force to keep the copy")
    size, seconds = os.path.getsize(target), app.clock.monotonic() - began
    session.answer(
        {"from": app.store.name, "to": target, "bytes": size, "seconds": round(seconds, 3), "violations": len(found)},
        f"{line(app.store.name)} was copied to {line(target)}: {size / 1e6:,.1f} MB in {seconds:.1f} s",
    )
    if found:
        output.print_note(violated)
    return FAILED if found else OK


@contextmanager
def _progress() -> Iterator[Callable[[int, int], None]]:
    """On a terminal, show a bar: a large file takes minutes."""
    if not sys.stderr.isatty():
        yield lambda _done, _total: None
        return
    with click.progressbar(length=1, label="pages", show_pos=True, file=sys.stderr) as bar:

        def show(done: int, total: int) -> None:
            bar.length = total
            bar.update(done - bar.pos)

        yield show
