"""The first lines of a child process: find the application, wire it up, work."""

from __future__ import annotations

import ctypes
import importlib
import logging
import os
import signal
import socket
import sys

import msgspec

from detent.app.detent import Detent
from detent.errors import InvalidSetting
from detent.model.clock import SystemClock
from detent.worker.board import Board
from detent.worker.channel import Channel
from detent.worker.child import Child
from detent.worker.logs import EventHandler
from detent.worker.options import WorkerOptions

__all__ = ["load_app", "main"]

_PR_SET_PDEATHSIG = 1


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
        raise InvalidSetting("app", f"{where!r} is {type(found).__name__}", "a Detent application")
    return found


def main() -> None:
    """Run as `python -m detent.worker.main CHANNEL_FD BOARD_FD`, with the options on standard input."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    _die_with_parent()
    options = msgspec.json.decode(sys.stdin.buffer.read(), type=WorkerOptions)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    logging.getLogger().addHandler(EventHandler())
    channel = Channel(socket.socket(fileno=int(sys.argv[1])))
    board = Board(int(sys.argv[2]), options.slots)
    app = load_app(options.app)
    Child(app, app.store, options, channel, board, SystemClock()).run()


def _die_with_parent() -> None:
    """Where the kernel can do it, it ends this process with its supervisor; elsewhere the silent channel does."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() == 1:
            os._exit(1)


if __name__ == "__main__":
    main()
