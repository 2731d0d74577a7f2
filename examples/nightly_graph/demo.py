"""A graph that waits for a repair: `python examples/nightly_graph/demo.py [--database sqlite:///FILE]`.

The README beside it tells the story.
"""

from __future__ import annotations

import argparse
import importlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).parent
SECONDS_MAX = 240.0
DAY = "2026-11-18"


@contextmanager
def worker(directory: Path, url: str) -> Iterator[None]:
    """Run a real worker."""
    command = [sys.executable, "-m", "detent.cli", "worker", "nightly:app"]
    environment = os.environ | {"DETENT_DATABASE_URL": url, "PYTHONPATH": str(HERE)}
    with (directory / "worker.log").open("ab") as log:
        process = subprocess.Popen(command, cwd=directory, env=environment, stdout=log, stderr=log)
    try:
        yield
    finally:
        process.terminate()
        process.wait(60)


def until(condition: Callable[[], bool]) -> None:
    """Wait for it."""
    end = time.monotonic() + SECONDS_MAX
    while not condition():
        assert time.monotonic() < end, "it takes too long"
        time.sleep(0.05)


def play(directory: Path, url: str) -> None:
    """Tell all of it; whatever is not as promised is an AssertionError."""
    os.environ["DETENT_DATABASE_URL"] = url
    sys.path.insert(0, str(HERE))
    application = importlib.import_module("nightly")
    app, nightly = application.app, application.nightly
    (directory / f"users-{DAY}.csv").write_text("ana\nbo\ncy\n")
    with app:
        graph, nodes = nightly(DAY)
        job = graph.start()
        assert nightly(DAY)[0].start() == job
        print(f"started the run of {DAY}: {len(nodes)} nodes; started again, it is the same run")
        orders, users, facts, publish, report = (app.jobs.get(node.id) for node in nodes)
        with worker(directory, url):
            until(lambda: (orders.refresh().state, users.refresh().state) == ("quarantined", "succeeded"))
            assert (facts.refresh().state, job.refresh().state) == ("pending", "pending")
            print(f"facts: {facts.why()}")
            (directory / f"orders-{DAY}.csv").write_text("1\n2\n")
            orders.retry(actor="ana", reason="the file has arrived")
            print("the file has arrived, and ana retries that one node")
            until(lambda: job.refresh().state == "succeeded")
        assert (publish.refresh().result, report.refresh().state) == (f"6 facts of {DAY}", "succeeded")
        assert users.refresh().attempt == 1
        assert app.record.verify() == []
        print(f"publish: {publish.result}; the run: {job.refresh().why()}; the record is healthy")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--database", help="keep everything there")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as found:
        directory = Path(found)
        play(directory, asked.database or f"sqlite:///{directory}/nightly.db")


if __name__ == "__main__":
    main()
