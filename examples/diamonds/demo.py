"""A supplier, a pipeline and a table: `python examples/diamonds/demo.py [--stones N]`. The README tells the story."""

from __future__ import annotations

import argparse
import importlib
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
SECONDS_MAX = 900.0

sys.path.insert(0, str(HERE))
supplier_module = importlib.import_module("supplier")


def worker(directory: Path, name: str) -> subprocess.Popen[bytes]:
    """A real one, with a short lease, so that it is soon missed."""
    words = ["worker", "diamonds:app", "--name", name, "--slots", "8", "--lease", "3s"]
    with (directory / f"{name}.log").open("wb") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "detent.cli", *words],
            cwd=directory,
            env=os.environ | {"PYTHONPATH": str(HERE)},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )


def end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def stones(database: str) -> dict[str, tuple[int, int, int]]:
    """Cost, whether it is for sale, and how often it was written, by id; from our own table."""
    with closing(sqlite3.connect(database)) as connection:
        rows = connection.execute("SELECT id, cost, available, seen FROM diamonds").fetchall()
    return {key: tuple(rest) for key, *rest in rows}


def play(directory: Path, url: str, count: int, exits: ExitStack) -> None:
    """All of it; whatever is not as promised is an AssertionError."""
    database = url.removeprefix("sqlite:///")
    supplier = supplier_module.Supplier(count)
    server, os.environ["SUPPLIER_URL"] = supplier_module.serve(supplier)
    exits.callback(server.shutdown)
    os.environ["DETENT_DATABASE_URL"] = url
    # The application looks there when it is imported, as it does in its worker.
    application: Any = importlib.import_module("diamonds")
    app, diamonds = exits.enter_context(application.app), application.Diamonds
    application.prepare.enqueue()
    workers = [worker(directory, name) for name in ("ana", "ben")]
    for one in workers:
        exits.callback(end, one)

    first = app.runs.start(diamonds())
    while not first.refresh().counts["partitions"] and not first.ended:
        time.sleep(0.05)
    supplier.errors = 0.02
    while not first.refresh().counts["records"] and not first.ended:
        time.sleep(0.05)
    changed = set(supplier.update(max(10, count // 200)))
    workers[0].send_signal(signal.SIGKILL)
    workers[0].wait()
    exits.callback(end, worker(directory, "cleo"))
    print(f"a first run of {first.counts['partitions']} partitions; {len(changed)} stones changed while it was on,")
    print("every fiftieth answer was an error, and one of two workers was killed")
    first.wait(SECONDS_MAX)
    table, seconds = stones(database), first.elapsed.total_seconds()
    print(f"  {first.state}: {first.counts['consolidated']} stones in {seconds:.1f} s, watermark {first.captured_at}")
    assert first.state == "completed", first.error
    assert len(table) == count
    assert {seen for _, _, seen in table.values()} == {1}, "each of them once"

    supplier.errors = 0.0
    second = app.runs.start(diamonds()).wait(SECONDS_MAX)
    table = stones(database)
    print(f"a second run, since then: {second.state}, {second.counts['records']} stones, all that had changed")
    assert (second.state, second.is_full) == ("completed", False), second.error
    assert {key for key, (_, _, seen) in table.items() if seen == 2} == changed
    assert {key: cost for key, (cost, _, _) in table.items()} == supplier.costs()

    gone = set(supplier.drop(max(5, count // 500)))
    third = app.runs.start(diamonds(), full=True, actor="ana", reason="monthly").wait(SECONDS_MAX)
    table = stones(database)
    print(f"a full run: {third.state}, {third.counts['retired']} stones are gone, and no longer for sale")
    assert third.state == "completed", third.error
    assert {key for key, (_, available, _) in table.items() if not available} == gone
    assert app.watermarks.get("diamonds") == third.captured_at
    assert app.record.verify() == []


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stones", type=int, default=2000)
    parser.add_argument("--database", metavar="URL", help="a SQLite file; default: one that is gone afterwards")
    options = parser.parse_args()
    with ExitStack() as exits:
        temporary = tempfile.TemporaryDirectory(prefix="diamonds-", ignore_cleanup_errors=True)
        directory = Path(exits.enter_context(temporary))
        play(directory, options.database or f"sqlite:///{directory}/diamonds.db", options.stones, exits)


if __name__ == "__main__":
    main()
