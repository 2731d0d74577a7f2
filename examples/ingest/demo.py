"""A hardened queue and a person who decides: `python examples/ingest/demo.py [--database sqlite:///FILE]`.

The README beside it tells the story.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path

from detent import Detent, errors

HERE = Path(__file__).parent
GOOD, FAR = 30, 3
WRONG = {"mended.json": "{", "arrived.json": "[]", "spoiled.json": '{"text": 7}'}


def drain(directory: Path, url: str) -> None:
    """A real worker, until nothing is left that could be done now or soon."""
    command = [sys.executable, "-m", "detent.cli", "worker", "ingest:app", "--drain"]
    environment = os.environ | {"DETENT_DATABASE_URL": url, "PYTHONPATH": str(HERE)}
    with (directory / "worker.log").open("ab") as log:
        subprocess.run(command, cwd=directory, env=environment, stdout=log, stderr=log, timeout=240, check=True)


def refused(what: str, error: Exception) -> None:
    print(f"  {what}: {str(error).splitlines()[0]}")


def play(directory: Path, url: str) -> None:
    """All of it; whatever is not as promised is an AssertionError."""
    os.environ["DETENT_DATABASE_URL"] = url
    # The application looks there when it is imported, as it does in its worker.
    sys.path.insert(0, str(HERE))
    application = importlib.import_module("ingest")
    app, ingest, prepare = application.app, application.ingest, application.prepare
    names = [*(f"good-{n}.json" for n in range(GOOD)), *(f"far-{n}.json" for n in range(FAR))]
    for name in names:
        (directory / name).write_text(json.dumps({"text": f"the words of {name}"}))
    for name, text in WRONG.items():
        (directory / name).write_text(text)
    with app:
        prepare.enqueue()
        jobs = {}
        for name in [*names, *WRONG, *names, *WRONG]:
            jobs[name] = app.enqueue(ingest.call(path=str(directory / name)), key=f"ingest:{name}")
        print(f"sent {2 * len(jobs)} documents, which are {len(jobs)} jobs: each has a key")
        drain(directory, url)
        succeeded = app.jobs.list(state="succeeded", task="ingest")
        retried = [job for job in succeeded if job.attempt > 1]
        print(f"{len(succeeded)} are stored, {len(retried)} of them after their source came back; put aside:")
        for job in app.jobs.list(state="quarantined", task="ingest"):
            print(f"  job {job.id}: {(job.error or '').strip().splitlines()[-1]}")
        assert (len(succeeded), len(retried)) == (GOOD + FAR, FAR)
        decide(app, directory, url, {name: job.id for name, job in jobs.items()})
        drain(directory, url)
        check(app, url, jobs["mended.json"].id)


def decide(app: Detent, directory: Path, url: str, ids: dict[str, int]) -> None:
    """What a person does with each, and what nobody may do."""
    (directory / "mended.json").write_text(json.dumps({"text": "mended by hand"}))
    app.jobs.get(ids["mended.json"]).retry(actor="ana", reason="the file is mended")
    app.jobs.get(ids["arrived.json"]).force("succeeded", actor="ana", reason="it came by mail and is stored")
    app.jobs.get(ids["spoiled.json"]).discard(actor="ana", reason="nobody can read it")
    print("ana sent one through again, declared one done and gave one up; refused were:")
    try:
        app.jobs.get(ids["good-0.json"]).force("pending", actor="eve", reason="once more")
    except errors.InvalidTransition as error:
        refused("to undo a success", error)
    try:
        app.jobs.get(ids["spoiled.json"]).force("succeeded", actor="eve", reason="")
    except errors.InvalidInput as error:
        refused("to force without a reason", error)
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as prompt:
        try:
            prompt.execute("UPDATE detent_job SET state = 'pending' WHERE id = ?", (ids["good-0.json"],))
        except sqlite3.IntegrityError as error:
            refused("to set a state by hand", error)


def check(app: Detent, url: str, mended: int) -> None:
    """Everything once, everything on record, nothing broken."""
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection:
        stored = connection.execute("SELECT count(*), count(DISTINCT name) FROM document").fetchone()
    print(f"the record of job {mended}:")
    for move in app.jobs.get(mended).history():
        told = f" by {move.actor}: {move.reason}" if move.trigger == "retry" else f" by {move.actor}"
        print(f"  {move.from_state or '-'} → {move.to_state}  {move.trigger}{told}")
    assert stored == (GOOD + FAR + 1, GOOD + FAR + 1), stored
    forced = [move for job in app.jobs.list(state="succeeded", task="ingest") for move in job.history() if move.forced]
    assert [(move.actor, move.reason) for move in forced] == [("ana", "it came by mail and is stored")]
    assert app.record.verify() == []
    print(f"{stored[0]} documents, each once; one override, marked as such; the record is healthy")


def main() -> None:
    """In a directory that is gone afterwards, on the database that was named or one in it."""
    arguments = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    arguments.add_argument("--database", metavar="URL")
    named = arguments.parse_args().database
    with tempfile.TemporaryDirectory(prefix="detent-ingest-") as directory:
        play(Path(directory), named or f"sqlite:///{directory}/ingest.db")


if __name__ == "__main__":
    main()
