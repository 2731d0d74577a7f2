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

from detent import Detent
from detent.cli.main import main
from detent.http.server import listen
from detent.model.clock import TurnableClock
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
            assert said.startswith("Serving the HTTP API on http://"), said
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


@pytest.mark.parametrize("more", ["--host=0.0.0.0", "--host=::", "--host=192.0.2.1", "--require-token"])
def test_it_does_not_start_without_a_token_where_one_is_needed(
    sqlite_store_url: str, capsys: pytest.CaptureFixture[str], more: str
) -> None:
    """S4: an address that other machines reach needs tokens; an expired or revoked one is none."""
    with Detent(sqlite_store_url, clock=TurnableClock()) as app:
        app.tokens.create("left")
        app.tokens.revoke("left")
        app.tokens.create("late", expires_in=60)  # by a clock that is behind
    assert main(["server", "--database", sqlite_store_url, "--port", "0", more]) == 2
    assert "create one with `detent tokens create NAME`" in capsys.readouterr().err


def test_a_name_is_no_address(sqlite_store_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["server", "--database", sqlite_store_url, "--host", "shop.example"]) == 2
    assert "host" in capsys.readouterr().err


def test_with_a_token_it_serves_other_addresses(tmp_path: Path, sqlite_store_url: str) -> None:
    """S4: and then the token is needed on loopback too."""
    with Detent(sqlite_store_url) as app:
        token = app.tokens.create("ana", role="operator").token
    with serving(tmp_path, sqlite_store_url, "--host", "0.0.0.0") as (url, _):
        local = url.replace("0.0.0.0", "127.0.0.1")
        assert httpx2.get(f"{local}/jobs").status_code == 401
        bearer = {"Authorization": f"Bearer {token}"}
        assert httpx2.get(f"{local}/session", headers=bearer).json()["name"] == "ana"
        assert httpx2.get(f"{local}/jobs", headers=bearer | {"Host": "evil.example"}).status_code == 421


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
