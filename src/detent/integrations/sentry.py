"""Jobs that fail, in Sentry.

sentry_sdk.init(dsn=...)
report_failures(app)
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any
from uuid import NAMESPACE_URL, uuid5

from detent.app.detent import Detent
from detent.client.job import Job
from detent.declare.context import Context
from detent.errors.base import essence
from detent.integrations.missing import missing

try:
    import sentry_sdk
except ImportError as error:
    raise missing("detent.integrations.sentry", "sentry-sdk") from error

if TYPE_CHECKING:
    from sentry_sdk.types import Event

__all__ = ["report_failures"]

_FRAME = re.compile(r'^[ |]*File "(?P<file>.+)", line (?P<line>\d+), in (?P<function>.+)$', re.MULTILINE)
_BLOCK = "Traceback (most recent call last):"


def report_failures(app: Detent) -> None:
    """Report each job that has failed for good to Sentry, once, with its ids as tags; also one whose worker died. Call
    it once for an application, where its tasks are declared.

    An attempt that is retried is not reported. What the function of a job reports itself, with `capture_exception` or
    as an error in the log, gets the ids of the job, too.
    """

    @app.around
    def with_ids(ctx: Context) -> Iterator[None]:
        with sentry_sdk.isolation_scope() as scope:
            scope.set_transaction_name(ctx.task, source="task")
            for name, value in _tags(ctx.job_id, ctx.attempt, ctx.task, ctx.tenant).items():
                scope.set_tag(name, value)
            yield

    @app.on_failure
    def report(job: Job[Any]) -> None:
        with sentry_sdk.isolation_scope():
            sentry_sdk.capture_event(_event_of(job))


def _tags(job_id: int, attempt: int, task: str, tenant: str) -> dict[str, str]:
    found = {"detent.job": str(job_id), "detent.attempt": str(attempt), "detent.task": task}
    return found | ({"detent.tenant": tenant} if tenant else {})


def _event_of(job: Job[Any]) -> Event:
    """Return the event of a failed job. Its id is made of the job and the attempt: a hook that is called again, because
    its worker died, reports the same event, and Sentry keeps one."""
    error = job.error or f"attempt {job.attempt} ended without an error: {job.executions()[-1].outcome}"
    says = essence(error)
    kind, _, message = says.partition(": ")
    is_python = bool(message) and kind.replace(".", "").replace("_", "").isalnum()
    last = error.rpartition(_BLOCK)[2]
    frames = [
        {"filename": one["file"], "abs_path": one["file"], "lineno": int(one["line"]), "function": one["function"]}
        for one in _FRAME.finditer(last)
    ]
    value: dict[str, Any] = {"type": kind if is_python else "JobFailed", "value": message if is_python else says}
    if frames:
        value["stacktrace"] = {"frames": frames}
    place = f"{job._engine.store.identity_of(job.id)}/{job.id}/{job.attempt}"
    return {
        "event_id": uuid5(NAMESPACE_URL, f"detent:{place}").hex,
        "level": "error",
        "logger": "detent",
        "transaction": job.task,
        "tags": _tags(job.id, job.attempt, job.task, job.tenant)
        | {"detent.state": job.state, "detent.queue": job.queue},
        "exception": {"values": [value]},
    }
