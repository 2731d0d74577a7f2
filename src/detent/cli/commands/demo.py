"""`detent demo`: run a small load on two workers, and kill one of them."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import click

from detent.cli import output
from detent.cli.command import Command
from detent.cli.failures import FAILED, OK, USAGE, CommandFailed
from detent.cli.options import flag, option
from detent.cli.session import Session
from detent.model.clock import SystemClock

if TYPE_CHECKING:
    from detent.cli.demo.examples import ExampleOutcome
    from detent.cli.demo.workload import TaskOutcome

__all__ = ["demo"]

_DATABASE = "demo.db"
_COLUMNS = output.columns("task", "jobs", "succeeded", "dead", "attempts", ("MOST", "attempts_max"), "ledger")


@click.command(cls=Command)
@flag("--keep", "Keep the database, and print its URL.")
@option("--directory", "Directory to keep the database in, in place of that of an earlier demo.", "DIRECTORY")
@click.pass_obj
def demo(session: Session, keep: bool, directory: str | None) -> int:
    """Run a small load on two workers, and kill one of them.

    It uses a SQLite file, in a temporary directory unless another is named, and takes less than a minute. In a checkout
    the examples run after it, on the same file. Exit code 0 if every job was done, wrote its line into the ledger once,
    and every example succeeded.
    """
    if session.database is not None or session.app is not None:
        raise CommandFailed("the demo has its own database and application: leave out --database and --app", USAGE)
    if directory is not None:
        return _run(session, _cleared(Path(directory).absolute()), keep=True)
    if keep:
        return _run(session, Path(tempfile.mkdtemp(prefix="detent-demo-")), keep=True)
    with tempfile.TemporaryDirectory(prefix="detent-demo-", ignore_cleanup_errors=True) as temporary:
        return _run(session, Path(temporary), keep=False)


def _cleared(directory: Path) -> Path:
    """Return the directory, made if needed, without the files of an earlier demo."""
    directory.mkdir(parents=True, exist_ok=True)
    for file in [*directory.glob(f"{_DATABASE}*"), directory / "workers.log"]:
        file.unlink(missing_ok=True)
    for example in directory.glob("example-*"):
        shutil.rmtree(example)
    return directory


def _run(session: Session, directory: Path, *, keep: bool) -> int:
    os.environ["DETENT_DATABASE_URL"] = url = f"sqlite:///{directory / _DATABASE}"
    # The application reads the URL when it is imported.
    from detent.cli.demo import shop
    from detent.cli.demo.display import open_display
    from detent.cli.demo.scenario import Workers, run_scenario
    from detent.cli.demo.workload import read_outcome

    clock = SystemClock()
    workers = Workers(directory)
    with shop.app as app:
        try:
            with open_display(clock) as display:
                run_scenario(app, workers, display, clock)
        finally:
            workers.stop()
        outcome = read_outcome(app)
    tasks, faults = outcome.by_task(), outcome.faults()
    examples = _run_examples(directory, url)
    faults += [f"the example {one.name} failed" for one in examples if not one.succeeded]
    if session.json:
        succeeded = {one.name: one.succeeded for one in examples}
        output.print_json({"tasks": [one._asdict() for one in tasks], "examples": succeeded, "faults": faults})
    else:
        output.print_rows(tasks, _COLUMNS)
        output.print_text("\n".join(faults) if faults else _verdict(tasks))
        if examples and not faults:
            output.print_text(f"Examples that succeeded: {', '.join(one.name for one in examples)}.")
    if keep:
        output.print_note(f"to look around: export DETENT_DATABASE_URL={url}; detent dead list; detent jobs list")
    return FAILED if faults else OK


def _run_examples(directory: Path, url: str) -> list[ExampleOutcome]:
    """Run all examples at the same time, and print their output one after the other."""
    from detent.cli.demo.examples import run_examples

    outcomes = []
    with closing(run_examples(directory, url)) as running:
        for one in running:
            output.print_note("\n".join([f"--- example {one.name}", *one.lines]))
            outcomes.append(one)
    return outcomes


def _verdict(tasks: Sequence[TaskOutcome]) -> str:
    jobs, succeeded, dead, attempts, _, ledger = (sum(column) for column in list(zip(*tasks, strict=True))[1:])
    return (
        f"{jobs} jobs in {attempts} attempts: {succeeded} succeeded; {dead} killed every process it ran in and is "
        f"dead. {ledger} jobs had a line to write into the ledger, and each wrote it once.\n"
        "Nothing was lost, nothing was done twice, and no invariant of the record is violated."
    )
