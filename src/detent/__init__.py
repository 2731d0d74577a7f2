"""Detent: a durable run engine for Python.

A job moves through a declared lifecycle that the database itself enforces; its effect is committed exactly once; every
transition is on record. These names are the public surface; everything else is private. Each is imported when it is
first used, so that a process which needs little of it stays small.
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING

if _TYPE_CHECKING:
    from detent import errors
    from detent.app.detent import Detent
    from detent.client.job import Job
    from detent.client.run import Run
    from detent.declare.batch import Change
    from detent.declare.context import Context, TargetContext
    from detent.declare.limit import Limit
    from detent.declare.pipeline import Page, Partition, split_by_count
    from detent.declare.probe import Probed
    from detent.declare.signals import Critical, Fatal, JobCancelled, Snooze, Throttled
    from detent.lifecycle.declare import Lifecycle, Transition
    from detent.model.backoff import Retry
    from detent.worker.shell_task import shell

__all__ = [
    "Change",
    "Context",
    "Critical",
    "Detent",
    "Fatal",
    "Job",
    "JobCancelled",
    "Lifecycle",
    "Limit",
    "Page",
    "Partition",
    "Probed",
    "Retry",
    "Run",
    "Snooze",
    "TargetContext",
    "Throttled",
    "Transition",
    "errors",
    "shell",
    "split_by_count",
]

__version__ = "0.1.0"

_HOMES = {
    "Change": "declare.batch",
    "Context": "declare.context",
    "Critical": "declare.signals",
    "Detent": "app.detent",
    "Fatal": "declare.signals",
    "Job": "client.job",
    "JobCancelled": "declare.signals",
    "Lifecycle": "lifecycle.declare",
    "Limit": "declare.limit",
    "Page": "declare.pipeline",
    "Partition": "declare.pipeline",
    "Probed": "declare.probe",
    "Retry": "model.backoff",
    "Run": "client.run",
    "Snooze": "declare.signals",
    "TargetContext": "declare.context",
    "Throttled": "declare.signals",
    "Transition": "lifecycle.declare",
    "shell": "worker.shell_task",
    "split_by_count": "declare.pipeline",
}


def __getattr__(name: str) -> object:
    if name == "errors":
        return _import_module("detent.errors")
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(_import_module(f"detent.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
