"""The first lines of a child process: find the application, wire it up, work."""

from __future__ import annotations

import importlib
import logging
import os
import signal
import socket
import sys
import traceback
from concurrent.futures import thread as pool_threads
from functools import partial

import msgspec

from detent.app.detent import Detent
from detent.errors import DatabaseError, DetentError, InvalidSetting
from detent.model.clock import SystemClock
from detent.store.apart import cause_of, is_damage
from detent.worker.arrival import arrive
from detent.worker.board import Board
from detent.worker.channel import Channel
from detent.worker.child import Child
from detent.worker.log_limit import DAMAGE, limit_log
from detent.worker.logs import EventHandler
from detent.worker.options import WorkerOptions
from detent.worker.output import OwnCode, set_up_output

__all__ = ["cannot_start", "load_app", "main", "set_up"]

log = logging.getLogger("detent.worker")


def load_app(where: str) -> Detent:
    """The application at `module:name`. `InvalidSetting` where there is none."""
    module_name, colon, attribute = where.partition(":")
    if not module_name or not colon or not attribute:
        raise InvalidSetting("app", repr(where), "module:name, such as shop:app")
    if "" not in sys.path and os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise
        raise InvalidSetting("app", f"no module {error.name!r}", "a module that can be imported from here") from None
    found: object = module
    for part in attribute.split("."):
        found = getattr(found, part, None)
    if not isinstance(found, Detent):
        what = f"no {attribute!r} in {module_name!r}" if found is None else f"{where!r}, a {type(found).__name__}"
        raise InvalidSetting("app", what, "a Detent application")
    return found


def cannot_start(where: str, error: BaseException) -> str:
    """Why an application cannot be had, in one line: what was raised, and where."""
    if isinstance(error, DetentError):
        return str(error)
    place = traceback.extract_tb(error.__traceback__)[-1]
    said = " ".join(str(error).split())
    return f"{where} cannot be imported: {type(error).__name__}: {said} ({place.filename}:{place.lineno})"


def set_up(options: WorkerOptions) -> Detent:
    """What every process with the user's code in it does first; its application."""
    for number in (signal.SIGINT, signal.SIGTERM):
        # A stop that is sent to everybody at once is the supervisor's to answer. A handler, unlike an ignored signal,
        # is not inherited by programs that the functions start; nor are copies of this process to be deaf.
        signal.signal(number, lambda *_: None)
    os.register_at_fork(after_in_child=_be_a_copy)
    set_up_output(options.log_format, options.log_level, options.package)
    limit_log(options)
    app = load_app(options.app)
    # After the application, which may have its own idea of logging.
    events = EventHandler()
    if options.log_level is None:
        events.addFilter(OwnCode(options.package))
    logging.getLogger().addHandler(events)
    return app


def _be_a_copy() -> None:
    """Prepare a copy of this process that a function made by a fork."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    # The threads of pools are not in the copy. At its end multiprocessing would wait for them, and fail.
    getattr(pool_threads, "_threads_queues", {}).clear()


def _put_declared(app: Detent) -> None:
    """Write what the code declares. If damage keeps that from the database, jobs run all the same."""
    try:
        app.put_declared()
    except DatabaseError as error:
        if not is_damage(error):
            raise
        log.error(
            "the declared schedules and limits are not written: %s; run `detent verify`",
            cause_of(error),
            extra=DAMAGE,
        )


def main() -> None:
    """Run as `python -m detent.worker.main CHANNEL_FD BOARD_FD`, with the options on standard input."""
    options = msgspec.json.decode(sys.stdin.buffer.read(), type=WorkerOptions)
    channel = Channel(socket.socket(fileno=int(sys.argv[1])))
    clock = SystemClock()
    try:
        app = set_up(options)
        arrive(clock, partial(_put_declared, app))
    except (Exception, SystemExit) as error:
        # The supervisor says it, as often as it tries: a traceback each time would bury it.
        channel.send("unable", why=cannot_start(options.app, error))
        if options.debug:
            raise
        os._exit(1)
    board = Board(int(sys.argv[2]), options.slots)
    Child(app, app.store, options, channel, board, clock).run()


if __name__ == "__main__":
    main()
