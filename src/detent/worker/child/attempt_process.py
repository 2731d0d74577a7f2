"""A process that runs one attempt at a time, with a database connection of its own.

Run as `python -m detent.worker.child.attempt_process CHANNEL_FD`, with the worker's options as JSON on standard input.
It writes events and commits itself. It sends how the attempt ended to the child, which writes that.
"""

from __future__ import annotations

import os
import queue
import socket
import sys
import threading
from typing import Any

import msgspec

from detent.app.detent import Detent
from detent.model.clock import SystemClock
from detent.model.records import Abort, Claimed, Finish
from detent.telemetry.tracing import flush_spans
from detent.worker.attempt.attempt import Attempt
from detent.worker.attempt.context import AttemptContext
from detent.worker.attempt.endings import Ending
from detent.worker.attempt.history import UnknownEffect
from detent.worker.child.application import set_up_process
from detent.worker.child.flusher import Flusher
from detent.worker.critical_thread import start_critical_thread
from detent.worker.database_wait import wait_for_database
from detent.worker.options import WorkerOptions
from detent.worker.outage_backoff import OutageBackoff
from detent.worker.supervisor.channel import Channel

__all__ = ["main"]

_SPANS_WAIT = 2.0
"""Maximum number of seconds to wait until the spans of a trace are exported."""


class _AttemptProcess:
    """Runs the jobs that the child sends, one at a time."""

    def __init__(self, app: Detent, options: WorkerOptions, channel: Channel) -> None:
        self._app = app
        self._options = options
        self._channel = channel
        self._jobs: queue.SimpleQueue[tuple[Claimed, UnknownEffect | None]] = queue.SimpleQueue()
        self._context: AttemptContext | None = None
        self._cancelled: tuple[int, int] | None = None
        clock = SystemClock()
        store, _ = wait_for_database(clock, lambda: app.store)
        self._flusher = Flusher(
            store,
            options.name,
            OutageBackoff(clock, threading.Event(), longest=options.lease / 3),
            lease=options.lease,
            written=lambda leases: None,
            aborted=lambda aborted: None,
        )

    def run(self) -> None:
        start_critical_thread("listener", self._listen)
        self._channel.send("ready")
        while True:
            claimed, unknown = self._jobs.get()
            attempt = Attempt(claimed, self._app, self._app.store, self._flusher, unknown)
            self._context = attempt.context
            if self._cancelled == (claimed.job_id, claimed.attempt):
                attempt.context.request_cancel()
            ending = attempt.run()
            # Its events are written before its ending.
            self._flusher.flush(self._options.lease)
            # A worker that stops ends this process as soon as its job has ended.
            flush_spans(_SPANS_WAIT)
            self._channel.send("ended", **_encode_ending(ending))

    def _listen(self) -> None:
        for message in self._channel.messages():
            if message["kind"] == "run":
                unknown = msgspec.convert(message["unknown"], UnknownEffect | None)
                self._jobs.put((msgspec.convert(message["claimed"], Claimed), unknown))
            else:
                self._cancel(message["job"], message["attempt"])
        flush_spans(_SPANS_WAIT)
        os._exit(1)

    def _cancel(self, job_id: int, attempt: int) -> None:
        """Cancel an attempt. The message may come before the attempt begins, or after it has ended."""
        self._cancelled = (job_id, attempt)
        context = self._context
        if context is not None and (context.job_id, context.attempt) == self._cancelled:
            context.request_cancel()


def _encode_ending(ending: Ending) -> dict[str, Any]:
    return {
        "finish": msgspec.to_builtins(ending) if isinstance(ending, Finish) else None,
        "abort": msgspec.to_builtins(ending) if isinstance(ending, Abort) else None,
    }


def main() -> None:
    """Serve the child at the other end of the channel until it is gone."""
    given = sys.stdin.buffer.read()
    try:
        options = msgspec.json.decode(given, type=WorkerOptions)
    except msgspec.DecodeError:
        # The child died before it could send the options.
        return
    app = set_up_process(options)
    _AttemptProcess(app, options, Channel(socket.socket(fileno=int(sys.argv[1])))).run()


if __name__ == "__main__":
    main()
