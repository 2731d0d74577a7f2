"""`detent server` as a process: it serves, stops on a signal, and refuses addresses that others could reach."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

from detent.cli.main import main
from detent.http.server import listen
from tests.deadlines import scaled, until
from tests.http.event_streams import Follower

APP = """
from detent import Context, Detent

app = Detent()

@app.task(name="add")
def add(ctx: Context, a: int, b: int) -> int:
    return a + b
"""


@contextmanager
def serving(folder: Path, url: str, *more: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """Run a server on a free port until the block ends."""
    (folder / "shop.py").write_text(APP)
    program = str(Path(sys.executable).with_name("detent"))
    command = [program, "server", "shop:app", "--database", url, "--port", "0", *more]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            said = process.stdout.readline()
            assert said.startswith("Serving the HTTP API on http://127.0.0.1:"), said
            yield said.split()[-1], process
        finally:
            process.kill()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_serves_and_stops_on_a_signal(tmp_path: Path, ready_url: str, number: signal.Signals) -> None:
    with serving(tmp_path, ready_url) as (url, process):
        made = httpx2.post(f"{url}/jobs", json={"task": "add", "payload": {"a": 1, "b": 2}})
        assert made.status_code == 201
        assert httpx2.get(f"{url}/jobs/{made.json()['id']}").json()["state"] == "pending"
        assert httpx2.get(f"{url}/openapi.json").json()["openapi"] == "3.1.0"
        root = url.removesuffix("/api/v1")
        assert httpx2.get(f"{root}/healthz").status_code == httpx2.get(f"{root}/readyz").status_code == 200
        process.send_signal(number)
        assert process.wait(scaled(20)) == 0


def test_it_stops_while_streams_are_open(tmp_path: Path, ready_url: str) -> None:
    """By default uvicorn waits for them for ever. With a time limit it cuts them off: clients see a broken answer."""
    with serving(tmp_path, ready_url) as (url, process):
        job = httpx2.post(f"{url}/jobs", json={"task": "add", "payload": {"a": 1, "b": 2}}).json()["id"]
        open_streams = [Follower(f"{url}/stream"), Follower(f"{url}/stream", job=job), Follower(f"{url}/stream")]
        until(lambda: open_streams[0].of("counts") and open_streams[1].of("transition"))
        process.send_signal(signal.SIGTERM)
        assert process.wait(scaled(20)) == 0
        assert all(one.ended() for one in open_streams)
        assert [one.error for one in open_streams] == [None, None, None]
        assert not open_streams[1].of("end")  # the job has not ended, so the client reconnects


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "shop.example"])
def test_an_address_that_others_can_reach_is_refused(
    sqlite_store_url: str, capsys: pytest.CaptureFixture[str], host: str
) -> None:
    """S4: requests carry no password, so only this machine may send them."""
    assert main(["server", "--database", sqlite_store_url, "--host", host]) == 2
    assert "host" in capsys.readouterr().err


def test_a_port_that_is_taken(tmp_path: Path, sqlite_store_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    with serving(tmp_path, sqlite_store_url) as (url, _):
        port = url.split(":")[2].partition("/")[0]
        assert main(["server", "--database", sqlite_store_url, "--port", port]) == 2
        assert f"port: found {port}: Address already in use" in capsys.readouterr().err


def test_answers_do_not_wait_for_acknowledgements() -> None:
    """Headers and body of an answer are two packets. With Nagle's algorithm the second one waited 40 ms."""
    with listen("127.0.0.1", 0) as listener:
        listener.listen()
        with socket.create_connection(listener.getsockname()):
            connection, _ = listener.accept()
            with connection:
                assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
