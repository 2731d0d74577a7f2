"""`detent top`: jobs by queue and state, as they change."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click

from detent.cli import render
from detent.cli.command import Command, duration
from detent.cli.session import Session
from detent.lifecycle.library import JOB
from detent.model.clock import SystemClock
from detent.model.escape import line

if TYPE_CHECKING:
    from detent.app.detent import Detent

__all__ = ["command"]

_HEAD = ("QUEUE", "CLAIMS", *(state.upper() for state in JOB.states), "DONE/S")


@click.command("top", cls=Command)
@click.option("--once", is_flag=True, help="Look once and end.")
@click.option("--interval", type=duration, default="2s", show_default=True, metavar="TIME", help="How often to look.")
@click.pass_obj
def command(session: Session, once: bool, interval: float) -> None:
    """Watch jobs by queue and state.

    Also how many succeed in a second. Ends with Ctrl-C. Without a terminal it prints one table after the other; with
    --json one object a line.
    """
    if interval <= 0:
        raise click.BadParameter("an interval is longer than nothing", param_hint="--interval")
    with session.open() as app:
        looks = _looks(app, interval, once=once)
        if session.json:
            for look in looks:
                render.json_line({"at": look.at, "queues": look.queues})
        elif sys.stdout.isatty() and not once:
            _live(looks)
        else:
            for look in looks:
                render.out(f"{render.when(look.at)}  {line(look.database)}")
                render.table(_HEAD, look.rows(), empty="no jobs")
                render.flush()


class _Look:
    """What one look saw."""

    def __init__(self, app: Detent, before: _Look | None, monotonic: float) -> None:
        store = app.store
        self.at = store.now()
        self.monotonic = monotonic
        self.database = store.name
        self.queues: list[dict[str, Any]] = [
            {"name": one.name, "paused": one.paused, "jobs": one.jobs, "succeeded_per_second": None}
            for one in app.queues.list()
        ]
        if before is not None:
            done = {one["name"]: one["jobs"]["succeeded"] for one in before.queues}
            for one in self.queues:
                more = one["jobs"]["succeeded"] - done.get(one["name"], 0)
                # Retention takes finished jobs away: fewer than before says nothing about the rate.
                one["succeeded_per_second"] = round(max(more, 0) / (monotonic - before.monotonic), 1)

    def rows(self) -> list[Sequence[render.Cell]]:
        """A row for each queue."""
        return [
            [
                one["name"],
                "paused" if one["paused"] else "open",
                *(one["jobs"][state] for state in JOB.states),
                one["succeeded_per_second"],
            ]
            for one in self.queues
        ]


def _looks(app: Detent, interval: float, *, once: bool) -> Iterator[_Look]:
    clock = SystemClock()
    look = None
    while True:
        look = _Look(app, look, clock.monotonic())
        yield look
        if once:
            return
        clock.sleep(interval)


def _live(looks: Iterator[_Look]) -> None:
    from rich.live import Live
    from rich.table import Table
    from rich.text import Text

    with Live(auto_refresh=False, screen=False) as live:
        for look in looks:
            table = Table(title=Text(line(look.database)), caption=f"{render.when(look.at)}, Ctrl-C ends", box=None)
            for at, name in enumerate(_HEAD):
                table.add_column(name, justify="left" if at < 2 else "right")
            for row in look.rows():
                table.add_row(*(Text(render.cell(value)) for value in row))
            live.update(table, refresh=True)
