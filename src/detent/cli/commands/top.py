"""`detent top`: jobs by queue and state, as they change."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from detent.cli import output
from detent.cli.command import Command
from detent.cli.commands.queues import QUEUE_COLUMNS
from detent.cli.options import duration, flag, option
from detent.cli.session import Session
from detent.model.clock import SystemClock
from detent.model.terminal_text import line

if TYPE_CHECKING:
    from detent.app.detent import Detent

__all__ = ["top"]


@click.command(cls=Command)
@flag("--once", "Print one table and end.")
@option("--interval", "Time between reads.", duration, default="2s")
@click.pass_obj
def top(session: Session, once: bool, interval: float) -> None:
    """Watch jobs by queue and state.

    Also shows how many succeed per second. Ctrl-C ends it. Without a terminal it prints one table after the other; with
    --json one object per line.
    """
    if interval <= 0:
        raise click.BadParameter("must be longer than 0 seconds", param_hint="--interval")
    with session.open() as app:
        snapshots = _snapshots(app, interval, once=once)
        if not session.json and sys.stdout.isatty() and not once:
            _draw_live(snapshots)
            return
        for snapshot in snapshots:
            if session.json:
                output.print_json_line(snapshot.to_object())
            else:
                output.print_text(f"{output.format_time(snapshot.at)}  {line(snapshot.database)}")
                output.print_rows(snapshot.queues, snapshot.columns, empty="no jobs")
                output.flush()


class _Snapshot:
    """The queues at one moment, with the rates since the snapshot before."""

    def __init__(self, app: Detent, before: _Snapshot | None, monotonic: float) -> None:
        self.at, self.monotonic, self.database = app.store.now(), monotonic, app.store.name
        self.queues = app.queues.list()
        self.rates: dict[str, float | None] = dict.fromkeys(one.name for one in self.queues)
        if before is not None:
            succeeded = {one.name: one.jobs["succeeded"] for one in before.queues}
            for one in self.queues:
                # Retention deletes finished jobs, so a count that shrinks says nothing about the rate.
                more = max(one.jobs["succeeded"] - succeeded.get(one.name, 0), 0)
                self.rates[one.name] = round(more / (monotonic - before.monotonic), 1)
        self.columns: output.Columns = {**QUEUE_COLUMNS, "DONE/S": lambda one: self.rates[one.name]}

    def to_object(self) -> dict[str, object]:
        """Return the snapshot as JSON values."""
        queues = [
            {"name": one.name, "paused": one.paused, "jobs": one.jobs, "succeeded_per_second": self.rates[one.name]}
            for one in self.queues
        ]
        return {"at": self.at, "queues": queues}


def _snapshots(app: Detent, interval: float, *, once: bool) -> Iterator[_Snapshot]:
    clock = SystemClock()
    snapshot = None
    while True:
        snapshot = _Snapshot(app, snapshot, clock.monotonic())
        yield snapshot
        if once:
            return
        clock.sleep(interval)


def _draw_live(snapshots: Iterator[_Snapshot]) -> None:
    from rich.live import Live
    from rich.table import Table
    from rich.text import Text

    with Live(auto_refresh=False, screen=False) as live:
        for snapshot in snapshots:
            caption = f"{output.format_time(snapshot.at)}, Ctrl-C ends"
            table = Table(title=Text(line(snapshot.database)), caption=caption, box=None)
            for at, name in enumerate(snapshot.columns):
                table.add_column(name, justify="left" if at < 2 else "right")
            for row in output.cells_of(snapshot.queues, snapshot.columns):
                table.add_row(*(Text(output.cell(value)) for value in row))
            live.update(table, refresh=True)
