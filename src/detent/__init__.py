"""Detent: a durable run engine for Python.

A job moves through a declared lifecycle that the database itself enforces; its effect is committed exactly once; every
transition is on record. These names are the public surface; everything else is private.
"""

from detent import errors
from detent.app.detent import Detent
from detent.client.job import Job
from detent.declare.context import Context
from detent.declare.limit import Limit
from detent.declare.probe import Probed
from detent.lifecycle.declare import Lifecycle, Transition
from detent.model.backoff import Retry
from detent.worker.shell_task import shell
from detent.worker.signals import Fatal, Snooze, Throttled

__all__ = [
    "Context",
    "Detent",
    "Fatal",
    "Job",
    "Lifecycle",
    "Limit",
    "Probed",
    "Retry",
    "Snooze",
    "Throttled",
    "Transition",
    "errors",
    "shell",
]

__version__ = "0.1.0"
