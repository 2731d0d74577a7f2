"""The client of the soak, a process of its own: it sends at a steady rate until SIGTERM, and then says what it sent.

`python -m prove.soak.load FOLDER [URL]`; URL is that of `detent server`. The totals go to FOLDER/sent.json.
"""

from __future__ import annotations

import http.client
import json
import signal
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from detent.client.job import Job
from detent.errors import DatabaseError, JobEnded, RunInProgress
from prove.soak.application import Mirror, Reprice, app, commit, order, plain, tick

__all__ = ["LOAD", "TARGETS", "sent_file"]

TARGETS = 30
"""Targets of one batch run."""
KEY_SECONDS = 120.0
"""A key is forgotten after this time, so keys do not grow without end."""
_EVERY = {"plain": 0.1, "commit": 0.25, "order": 1.0, "run": 15.0, "request": 1.0}
"""Seconds between two of each. A run is a batch run and a pipeline run in turn."""
LOAD = (
    f"{1 / _EVERY['plain']:g} plain jobs, {1 / _EVERY['commit']:g} jobs with a commit block and "
    f"{1 / _EVERY['order']:g} workflow a second; every {2 * _EVERY['run']:g} s a batch run of {TARGETS} targets, which "
    "is rolled back, and a pipeline run; a schedule every minute; "
    f"{1 / _EVERY['request']:g} HTTP request a second, and an open event stream"
)
_PATIENCE = 180.0
_SIGNALLED_LATER = 3
_PATHS = ("jobs?limit=20", "queues", "workers", "runs?limit=5", "rates?step=minute")
_CUT = (OSError, http.client.HTTPException)
T = TypeVar("T")


def sent_file(folder: Path) -> Path:
    """Return the file with the totals."""
    return folder / "sent.json"


class Load:
    """The loops of the client, each in a thread of its own."""

    def __init__(self, server: str | None) -> None:
        self._server = urlsplit(server).netloc if server else None
        self._over = threading.Event()
        self._threads: list[threading.Thread] = []
        self._orders: deque[tuple[int, Job[Any]]] = deque()
        self.sent: Counter[str] = Counter()
        """Numbers 1 to this were sent, for each kind."""
        self.streamed = 0
        """Messages of the event stream."""
        self.problems: list[str] = []

    def run(self) -> None:
        """Send until `stop` is called."""
        self.until_answered(lambda: app.schedules.set("tick", "* * * * *", tick.call()))
        loops: list[tuple[str, Callable[[], None]]] = [
            ("plain", self._plain),
            ("commit", self._commit),
            ("order", self._order),
            ("run", self._run),
        ]
        if self._server:
            loops += [("request", self._request), ("stream", self._stream)]
        self._threads = [threading.Thread(target=self._loop, args=loop) for loop in loops]
        for thread in self._threads:
            thread.start()
        for thread in self._threads:
            thread.join()
        while self._orders:
            self._signal_oldest()

    def stop(self) -> None:
        """End all loops."""
        self._over.set()

    def until_answered(self, call: Callable[[], T]) -> T:
        """Call until the database answers. Everything sent is under a key or may be repeated."""
        deadline = time.monotonic() + _PATIENCE
        while True:
            try:
                return call()
            except DatabaseError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.2)

    def _loop(self, name: str, step: Callable[[], None]) -> None:
        """Call a step at a steady rate. After an outage nothing is made up for."""
        try:
            while not self._over.wait(_EVERY.get(name, 1.0)):
                step()
        except Exception as error:
            self.problems.append(f"The client could not go on with {name}: {error!r}")
            self.stop()

    def _plain(self) -> None:
        number = self.sent["plain"] + 1
        call = plain.call(number=number, sent_at=time.time())
        self.until_answered(lambda: app.enqueue(call, key=f"plain-{number}", key_ttl=KEY_SECONDS))
        self.sent["plain"] = number

    def _commit(self) -> None:
        number = self.sent["commit"] + 1
        call = commit.call(number=number)
        self.until_answered(lambda: app.enqueue(call, key=f"commit-{number}", key_ttl=KEY_SECONDS))
        self.sent["commit"] = number

    def _order(self) -> None:
        number = self.sent["order"] + 1
        call = order.call(number=number)
        job = self.until_answered(lambda: app.enqueue(call, key=f"order-{number}", key_ttl=KEY_SECONDS))
        self.sent["order"] = number
        self._orders.append((number, job))
        if len(self._orders) > _SIGNALLED_LATER:
            self._signal_oldest()

    def _signal_oldest(self) -> None:
        number, job = self._orders.popleft()

        def send() -> None:
            with suppress(JobEnded):  # an earlier signal whose answer was lost
                job.signal("go", number, dedupe="go")

        self.until_answered(send)

    def _run(self) -> None:
        """A preview whose answer was lost stays a preview: it has no effects. A run that is rolled back is not
        reconciled for the next 30 days, so retention may delete it."""
        first = self.sent["target"] + 1
        run = self.until_answered(lambda: app.runs.preview(Reprice(first, TARGETS)))
        self.until_answered(lambda: run.wait(_PATIENCE, until=["previewed"]))
        self.until_answered(lambda: run.apply() if run.refresh().state == "preview" else run)
        self.sent["target"] += TARGETS
        self.until_answered(lambda: run.wait(_PATIENCE, until=["applied"]))
        self.until_answered(lambda: run.roll_back() if run.refresh().state == "applied" else run)
        self.sent["reverted"] += TARGETS
        self.until_answered(lambda: run.wait(_PATIENCE, until=["rolled_back"]))
        self._over.wait(_EVERY["run"])
        with suppress(RunInProgress):  # the answer was lost, and the run has begun
            self.until_answered(lambda: app.runs.start(Mirror()))

    def _request(self) -> None:
        """Read something and send a job. A request that was not answered is repeated under the same key."""
        number = self.sent["posted"] + 1
        path = _PATHS[number % len(_PATHS)]
        deadline = time.monotonic() + _PATIENCE
        body = json.dumps({"task": "posted", "payload": {"number": number}, "key_ttl": KEY_SECONDS})
        headers = {"Content-Type": "application/json", "Idempotency-Key": f"posted-{number}"}
        while True:
            with suppress(*_CUT), closing(self._connection()) as connection:
                connection.request("GET", f"/api/v1/{path}")
                read = self._status(connection)
                connection.request("POST", "/api/v1/jobs", body, headers)
                posted = self._status(connection)
                if read == 200 and posted in (200, 201):
                    self.sent["posted"] = number
                    return
                if 400 <= min(read, posted) < 500 or max(read, posted) == 500:
                    raise RuntimeError(f"GET /{path} was answered with {read}, POST /jobs with {posted}")
            if time.monotonic() > deadline:
                raise TimeoutError("the server did not answer")
            time.sleep(0.2)

    def _stream(self) -> None:
        """Read the stream of changes until it is cut; then the loop opens it again."""
        with suppress(*_CUT), closing(self._connection()) as connection:
            connection.request("GET", "/api/v1/stream")
            answer = connection.getresponse()
            while not self._over.is_set() and (line := answer.readline()):
                self.streamed += line.startswith(b"event:")

    def _connection(self) -> http.client.HTTPConnection:
        assert self._server is not None
        return http.client.HTTPConnection(self._server, timeout=20)

    @staticmethod
    def _status(connection: http.client.HTTPConnection) -> int:
        answer = connection.getresponse()
        answer.read()
        return answer.status


def main(folder: str, server: str | None = None) -> None:
    """Send until SIGTERM."""
    load = Load(server)
    signal.signal(signal.SIGTERM, lambda *_: load.stop())
    with app:
        load.run()
    sent_file(Path(folder)).write_text(
        json.dumps({"sent": load.sent, "streamed": load.streamed, "problems": load.problems})
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
