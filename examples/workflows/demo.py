"""Workflows that survive a crash and wait for free: `python examples/workflows/demo.py [--database URL]`.

The README beside it tells the story.
"""

from __future__ import annotations

import argparse
import importlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent


def drain(directory: Path, url: str) -> None:
    """A real worker, until nothing is left that could be done now or soon."""
    command = [sys.executable, "-m", "detent.cli", "worker", "workflows:app", "--drain", "--lease", "2"]
    environment = os.environ | {"DETENT_DATABASE_URL": url, "PYTHONPATH": str(HERE)}
    with (directory / "worker.log").open("ab") as log:
        subprocess.run(command, cwd=directory, env=environment, stdout=log, stderr=log, timeout=240, check=True)


def play(directory: Path, url: str) -> None:
    """All of it; whatever is not as promised is an AssertionError."""
    os.environ["DETENT_DATABASE_URL"] = url
    sys.path.insert(0, str(HERE))
    application = importlib.import_module("workflows")
    (directory / "die").touch()
    with application.app as app:
        application.prepare.enqueue()
        lamp, piano = application.order.enqueue("lamp"), application.order.enqueue("piano")
        expense = application.expense.enqueue(7)
        agent, album = application.agent.enqueue("tea"), application.thumbnails.enqueue(200)
        drain(directory, url)
        print(f"order of a lamp: {lamp.refresh().result!r}, although its worker died after charging")
        print(f"order of a piano: {piano.refresh().state}, and what was done for it is undone")
        print(f"agent: {agent.refresh().result!r}")
        print(f"thumbnails: {album.refresh().result!r}")
        print(f"expense: {expense.why()}")
        mails = [line for line in (directory / "outside.log").read_text().splitlines() if "to the boss" in line]
        (token,) = {mail.rpartition("/")[2] for mail in mails}  # the same, even if its worker died while it wrote
        app.workflows.redeem(token, {"approved": True}, actor="boss")
        assert not app.workflows.redeem(token, {"approved": True}).created  # a second click changes nothing
        drain(directory, url)
        print(f"expense: {expense.refresh().result!r}")
        check(directory, app, lamp.id, piano.id)


def check(directory: Path, app: object, lamp: int, piano: int) -> None:
    """Everything on record, nothing repeated that must not be."""
    outside = (directory / "outside.log").read_text().splitlines()
    charged = [line for line in outside if line.startswith("charged for lamp")]
    assert len(set(charged)) == 1, charged  # asked twice under one key: the bank charges once
    assert outside.count("shipped lamp") == 1
    assert outside[outside.index("refunded payment for piano") + 1 :].count("released piano") == 1
    assert sum(line.startswith("tool ") for line in outside) == 2
    for job_id in (lamp, piano):
        names = [step.path for step in app.jobs.get(job_id).steps()]  # type: ignore[attr-defined]
        print(f"steps of job {job_id}: {', '.join(names)}")
    assert app.record.verify() == []  # type: ignore[attr-defined]
    print("every step once, every wait without a worker; the record is healthy")


def main() -> None:
    """In a directory that is gone afterwards, on the database that was named or one in it."""
    arguments = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    arguments.add_argument("--database", metavar="URL")
    named = arguments.parse_args().database
    with tempfile.TemporaryDirectory(prefix="detent-workflows-") as directory:
        play(Path(directory), named or f"sqlite:///{directory}/workflows.db")


if __name__ == "__main__":
    main()
