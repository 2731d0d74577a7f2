"""Programs of an example, as its README starts them: in a fresh folder, with a database of the test."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx2

from tests.deadlines import scaled, until

__all__ = ["EXAMPLES", "Place"]

EXAMPLES = Path(__file__).parents[2] / "examples"


class Place:
    """A fresh folder in which the programs of an example run."""

    def __init__(self, example: str, folder: Path, url: str) -> None:
        self._folder = folder
        clean = {name: value for name, value in os.environ.items() if not name.startswith("DETENT_")}
        path = os.pathsep.join([str(Path(sys.executable).parent), clean["PATH"]])
        extra = {"DETENT_DATABASE_URL": url, "PYTHONPATH": str(EXAMPLES / example), "PATH": path}
        self.environment = clean | extra | {"PYTHONWARNINGS": "error"}

    def run(self, *command: str, code: int = 0) -> str:
        """Run a command to its end, and return what it printed."""
        done = subprocess.run(
            command, cwd=self._folder, env=self.environment, capture_output=True, text=True, timeout=scaled(100)
        )
        assert done.returncode == code, f"{command}\n{done.stdout}\n{done.stderr}"
        return done.stdout + done.stderr

    @contextmanager
    def server(self, *command: str, health: str) -> Iterator[httpx2.Client]:
        """Run a web server on a free port, which replaces `{port}`, until the block ends."""
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = str(probe.getsockname()[1])
        log = self._folder / "server.log"
        with log.open("w", encoding="utf-8") as out:
            process = subprocess.Popen(
                [word.replace("{port}", port) for word in command],
                cwd=self._folder,
                env=self.environment,
                stdout=out,
                stderr=out,
            )
        try:
            with httpx2.Client(base_url=f"http://127.0.0.1:{port}", timeout=scaled(20)) as http:

                def answers() -> Any:
                    assert process.poll() is None, log.read_text("utf-8")
                    with suppress(httpx2.TransportError):
                        return http.get(health).status_code < 500
                    return False

                until(answers, "the web server answers", seconds=30)
                yield http
        finally:
            process.terminate()
            process.wait(scaled(30))
        assert "Traceback" not in log.read_text("utf-8"), log.read_text("utf-8")
