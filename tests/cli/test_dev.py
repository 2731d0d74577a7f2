"""`detent dev` as a process: it serves and works, takes new code, survives broken code, and leaves nothing behind."""

from __future__ import annotations

import getpass
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2

from tests.deadlines import scaled, until

APP = """
from detent import Context, Detent

app = Detent()
print("imported")

@app.task(name="number")
def number(ctx: Context) -> int:
    return 1
"""


def command(*more: str) -> list[str]:
    return [sys.executable, "-m", "detent.cli", "dev", *more]


def environment(folder: Path) -> dict[str, str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("DETENT_")}
    return clean | {"TMPDIR": str(folder)}


def left_behind(folder: Path) -> list[str]:
    """Processes that were started for the folder and still live."""
    mark, found = os.fsencode(f"TMPDIR={folder}"), []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if mark in (entry / "environ").read_bytes().split(b"\0") and (entry / "cmdline").read_bytes():
                found.append((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            continue
    return found


@contextmanager
def running(folder: Path) -> Iterator[tuple[str, subprocess.Popen[str], Path]]:
    """Run it in a folder on a free port; gives the URL, the process, and the file with what it notes."""
    notes, browser = folder / "notes.txt", folder / "browser"
    browser.write_text('#!/bin/sh\necho "$1" > opened.txt\n')
    browser.chmod(0o755)
    with (
        notes.open("w") as errors,
        subprocess.Popen(
            command("shop:app", "--port", "0", "--json", "--open"),
            cwd=folder,
            env=environment(folder) | {"BROWSER": str(browser)},
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        ) as process,
    ):
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            while line and not line.startswith("{"):
                line = process.stdout.readline()
            assert line, notes.read_text()
            yield json.loads(line)["url"], process, notes
        finally:
            process.kill()
    until(lambda: not left_behind(folder), "the end of all processes")


def result_of_a_job(url: str) -> int | None:
    """What a job returns that is enqueued now; None if the server does not answer."""
    try:
        job = httpx2.post(f"{url}/api/v1/jobs", json={"task": "number", "payload": {}}).json()["id"]
        until(lambda: httpx2.get(f"{url}/api/v1/jobs/{job}").json()["state"] == "succeeded", "the end of a job")
        result: int = httpx2.get(f"{url}/api/v1/jobs/{job}").json()["result"]
        return result
    except httpx2.HTTPError:
        return None


def test_from_the_first_start_to_ctrl_c(tmp_path: Path) -> None:
    code = tmp_path / "shop.py"
    code.write_text(APP)
    with running(tmp_path) as (url, process, notes):
        assert result_of_a_job(url) == 1
        assert (tmp_path / "detent-dev.db").exists()
        assert (tmp_path / "opened.txt").read_text().strip() == url
        httpx2.post(f"{url}/api/v1/queues/other/pause", json={})
        (paused,) = httpx2.get(f"{url}/api/v1/record/search", params={"entity": "queue"}).json()["items"]
        assert paused["actor"] == getpass.getuser()
        code.write_text(APP.replace("return 1", "return ("))
        until(lambda: "the old code stays until it is mended" in notes.read_text(), "the note about the broken file")
        assert "SyntaxError" in notes.read_text()
        assert result_of_a_job(url) == 1
        code.write_text(APP.replace("return 1", "return 2"))
        until(lambda: result_of_a_job(url) == 2, "a job that runs the new code")
        process.send_signal(signal.SIGINT)
        assert process.wait(scaled(30)) == 0


def test_nothing_outlives_it(tmp_path: Path) -> None:
    """Not even if it is killed: then the server and the worker go too."""
    (tmp_path / "shop.py").write_text(APP)
    with running(tmp_path) as (_, process, _):
        assert len(left_behind(tmp_path)) >= 3
        process.kill()


def test_an_application_that_cannot_be_imported_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text("import nothing_of_that_name\n")
    for where, said in (("shop:app", "nothing_of_that_name"), ("gone:app", "no module 'gone'")):
        ended = subprocess.run(
            command(where, "--port", "0"), cwd=tmp_path, env=environment(tmp_path), capture_output=True, text=True
        )
        assert ended.returncode != 0
        assert said in ended.stderr
        assert len(ended.stderr.splitlines()) == 1
    assert not (tmp_path / "detent-dev.db").exists()
