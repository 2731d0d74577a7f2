"""Entry point of a child process: load the application, write what it declares, then work.

Run as `python -m detent.worker.child CHANNEL_FD BOARD_FD`, with the worker's options as JSON on standard input.
"""

from __future__ import annotations

import logging
import os
import socket
import sys
from functools import partial

import msgspec

from detent.app.detent import Detent
from detent.errors import DatabaseError
from detent.model.clock import SystemClock
from detent.store.row_errors import cause_of, is_damage
from detent.worker.child.application import describe_import_error, set_up_process
from detent.worker.child.process import Child
from detent.worker.database_wait import wait_for_database
from detent.worker.log_limit import DAMAGE
from detent.worker.options import WorkerOptions
from detent.worker.supervisor.board import Board
from detent.worker.supervisor.channel import Channel

log = logging.getLogger("detent.worker")


def main() -> None:
    """Run a child until its supervisor stops it."""
    options = msgspec.json.decode(sys.stdin.buffer.read(), type=WorkerOptions)
    channel = Channel(socket.socket(fileno=int(sys.argv[1])))
    clock = SystemClock()
    try:
        app = set_up_process(options)
        wait_for_database(clock, partial(_put_declared, app))
    except (Exception, SystemExit) as error:
        # The supervisor logs the cause at every try. A traceback each time would hide it.
        channel.send("unable", why=describe_import_error(options.app, error))
        if options.debug:
            raise
        os._exit(1)
    board = Board(int(sys.argv[2]), options.slots)
    Child(app, app.store, options, channel, board, clock).run()


def _put_declared(app: Detent) -> None:
    """Write the schedules and limits that the code declares. If damage prevents that, jobs run all the same."""
    try:
        app.put_declared()
    except DatabaseError as error:
        if not is_damage(error):
            raise
        log.error(
            "The declared schedules and limits could not be written: %s. Run `detent verify`.",
            cause_of(error),
            extra=DAMAGE,
        )


if __name__ == "__main__":
    main()
