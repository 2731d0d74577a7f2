"""`detent demo`: see it work, and see a worker die."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from detent.cli import render
from detent.cli.command import Command
from detent.cli.failures import FAILED, OK, USAGE, CommandFailed
from detent.cli.session import Session
from detent.model.clock import SystemClock

if TYPE_CHECKING:
    from detent.cli.demo.books import Line
    from detent.cli.demo.examples import Story

__all__ = ["command"]

_HEAD = ("TASK", "JOBS", "SUCCEEDED", "DEAD", "ATTEMPTS", "MOST", "LEDGER")


@click.command("demo", cls=Command)
@click.option("--keep", is_flag=True, help="Leave the database there to look at, and say where.")
@click.pass_obj
def command(session: Session, keep: bool) -> int:
    """Run a small load on two workers, and kill one of them.

    On a SQLite file in a directory of its own, in less than a minute. In a checkout the examples play after it. Exit
    code 0 where every job was done, its line is in the ledger once, and every example ended well.
    """
    if session.database is not None or session.app is not None:
        raise CommandFailed("the demo has a database and an application of its own: no --database, no --app", USAGE)
    if keep:
        return _demo(session, Path(tempfile.mkdtemp(prefix="detent-demo-")), keep=True)
    with tempfile.TemporaryDirectory(prefix="detent-demo-", ignore_cleanup_errors=True) as directory:
        return _demo(session, Path(directory), keep=False)


def _demo(session: Session, directory: Path, *, keep: bool) -> int:
    os.environ["DETENT_DATABASE_URL"] = url = f"sqlite:///{directory / 'demo.db'}"
    # The application looks there when it is imported, as an application of a user's does.
    from detent.cli.demo import books, shop
    from detent.cli.demo.crew import Crew
    from detent.cli.demo.play import play
    from detent.cli.demo.stage import stage

    clock = SystemClock()
    crew = Crew(directory)
    with shop.app as app:
        try:
            with stage(clock) as watched:
                play(app, crew, watched, clock)
        finally:
            crew.end()
        found = books.look(app)
    faults = found.faults()
    stories = _examples(directory)
    faults += [f"the example {story.name} did not end well" for story in stories if not story.well]
    if session.json:
        told = {story.name: story.well for story in stories}
        render.json_value({"tasks": [line._asdict() for line in found.lines()], "examples": told, "faults": faults})
    else:
        render.table(_HEAD, found.lines())
        render.out("\n".join(faults) if faults else _verdict(found.lines()))
        if stories and not faults:
            render.out(f"Examples that ended well: {', '.join(story.name for story in stories)}.")
    if keep:
        render.note(f"to look around: export DETENT_DATABASE_URL={url}; detent dead list; detent jobs list")
    return FAILED if faults else OK


def _examples(directory: Path) -> list[Story]:
    """All at once, and then told one after the other."""
    from detent.cli.demo import examples

    playing = examples.begin(directory)
    stories = []
    try:
        for example in playing:
            story = examples.told(example)
            render.note("\n".join([f"--- example {story.name}", *story.lines]))
            stories.append(story)
    finally:
        examples.end(playing)
    return stories


def _verdict(lines: Sequence[Line]) -> str:
    jobs, succeeded, dead, attempts, _, ledger = (sum(column) for column in list(zip(*lines, strict=True))[1:])
    return (
        f"{jobs} jobs in {attempts} attempts: {succeeded} succeeded, {dead} killed every process it ran in and is "
        f"dead; {ledger} had a line to write into the ledger, and wrote it once.\n"
        "Nothing was lost, nothing was done twice, and no invariant of the record is violated."
    )
