"""`detent server` in a process of its own, which is killed and started again on the same port."""

from __future__ import annotations

import multiprocessing
import os
import socket
import sys
from multiprocessing.process import BaseProcess
from pathlib import Path

__all__ = ["KilledServer"]

_APPLICATION = """
from detent import Context, Detent

app = Detent()


@app.task(name="add")
def add(ctx: Context, a: int, b: int) -> int:
    return a + b
"""
_NEEDED = ["detent.cli.main", "detent.cli.commands.server", "detent.http.server", "detent.store.open", "psycopg"]


class KilledServer:
    """The server on one database. Each life is a process that runs the command `detent server`; its modules were
    imported by the process from which it is forked, since an import takes longer than most lives."""

    def __init__(self, folder: Path, url: str) -> None:
        (folder / "shop.py").write_text(_APPLICATION)
        self._folder, self._database = folder, url
        with socket.create_server(("127.0.0.1", 0)) as listener:
            self._port = int(listener.getsockname()[1])
        self._processes = multiprocessing.get_context("forkserver")
        self._processes.set_forkserver_preload(_NEEDED)
        self._process: BaseProcess | None = None
        self.url = f"http://127.0.0.1:{self._port}"

    def start(self) -> None:
        """Begin a life."""
        process = self._processes.Process(
            target=_serve, args=(str(self._folder), self._database, self._port), daemon=True
        )
        process.start()
        self._process = process

    def kill(self) -> None:
        """End it with SIGKILL. Raises RuntimeError if it has ended by itself."""
        assert self._process is not None
        ended_itself = self._process.exitcode
        self._process.kill()
        self._process.join()
        self._process = None
        if ended_itself is not None:
            raise RuntimeError(f"the server ended by itself with exit code {ended_itself}")

    def close(self) -> None:
        """End it, if it runs."""
        if self._process is not None:
            self._process.kill()
            self._process.join()


def _serve(folder: str, database: str, port: int) -> None:
    os.chdir(folder)
    sys.path.insert(0, folder)
    output = os.open(os.devnull, os.O_WRONLY)
    os.dup2(output, 1)
    from detent.cli.main import main

    sys.exit(main(["server", "shop:app", "--database", database, "--port", str(port), "--actor", "ana"]))
