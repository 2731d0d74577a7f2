"""The user's application in a process of a worker: import it, and prepare the process for running its code."""

from __future__ import annotations

import importlib
import logging
import os
import signal
import sys
import traceback
from concurrent.futures import thread as pool_threads

from detent.app.detent import Detent
from detent.declare.around_hooks import Around
from detent.errors import DetentError, InvalidSetting
from detent.telemetry.tracing import is_traced
from detent.worker.attempt.event_log_handler import EventLogHandler
from detent.worker.attempt.log_ids import LogIds
from detent.worker.log_limit import limit_log
from detent.worker.options import WorkerOptions
from detent.worker.output import OwnCode, set_up_output

__all__ = ["describe_import_error", "load_app", "set_up_process"]


def load_app(where: str) -> Detent:
    """Import and return the application at `module:name`. Raises `InvalidSetting` if there is none."""
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


def describe_import_error(where: str, error: BaseException) -> str:
    """Return in one line why an application could not be loaded: what was raised, and at which line."""
    if isinstance(error, DetentError):
        return str(error)
    message = " ".join(str(error).split())
    if isinstance(error, SyntaxError) and error.filename:
        place = ""  # the message has it
    else:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        place = f" ({frame.filename}:{frame.lineno})"
    return f"{where} cannot be imported: {type(error).__name__}: {message}{place}"


def set_up_process(options: WorkerOptions) -> Detent:
    """Prepare a process that runs the user's code, and return the application.

    Called first in every such process: it sets signal handlers and logging, and then imports the application.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        # The supervisor answers a stop that is sent to the whole process group. A handler is used instead of SIG_IGN
        # because ignored signals would be inherited by the programs that functions start.
        signal.signal(number, lambda *_: None)
    os.register_at_fork(after_in_child=_reset_forked_copy)
    set_up_output(options.log_format, options.log_level, options.package, worker=options.name)
    for handler in logging.getLogger().handlers:
        handler.addFilter(LogIds())
    limit_log(options)
    app = load_app(options.app)
    # After the application, which may configure logging itself.
    events = EventLogHandler()
    if options.log_level is None:
        events.addFilter(OwnCode(options.package))
    logging.getLogger().addHandler(events)
    _trace_attempts(app)
    return app


def _trace_attempts(app: Detent) -> None:
    """Make spans of attempts, if the application has set a tracer provider. Outermost, so that hooks are inside."""
    if is_traced():
        from detent.telemetry.spans import attempt_span

        app.around_hooks.insert(0, Around("attempt_span", attempt_span, is_async=False))


def _reset_forked_copy() -> None:
    """Restore the defaults in a copy of this process that a function made with a fork."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    # The threads of pools do not exist in the copy. Without this, multiprocessing would wait for them at exit and fail.
    getattr(pool_threads, "_threads_queues", {}).clear()
