"""The handle of a job."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any, Generic, TypeVar

import msgspec

from detent.declare.settings import Settings
from detent.errors import InvalidInput, JobFailed, JobTimeout, NotFound, ResultExpired
from detent.lifecycle.library import JOB
from detent.model import jsondoor
from detent.model.clock import Clock
from detent.model.records import JobDetails, JobRow
from detent.store.contract import Verbs

__all__ = ["Job", "Origin"]

R = TypeVar("R")

_FIRST_PAUSE = 0.005


class Origin(msgspec.Struct, frozen=True):
    """What handles of one task have in common: where they look, and how they read a result and for how long."""

    verbs: Verbs
    clock: Clock
    settings: Settings
    decode: Callable[[str | None], Any] | None = None
    result_ttl: float | None = None

    def decode_result(self, text: str | None) -> Any:
        """A result as its task has it; where that is not known, as JSON has it."""
        if self.decode is not None:
            return self.decode(text)
        return None if text is None else jsondoor.decode(text, field="result", depth_max=self.settings.depth_max)


class Job(Generic[R]):
    """A job by its id. It shows the job as of the last look: the first use looks, `refresh()` looks again.

    Two handles are equal when they mean the same job. `created` is False where an earlier job answered the request.
    """

    __slots__ = ("__weakref__", "_nonce", "_origin", "_row", "created", "id")

    def __init__(
        self, job_id: int, origin: Origin, created: bool = False, row: JobRow | None = None, nonce: int | None = None
    ) -> None:
        self.id = job_id
        self.created = created
        self._origin = origin
        self._row = row
        self._nonce = nonce

    def __repr__(self) -> str:
        return f"<Job {self.id}>" if self._row is None else f"<Job {self.id} {self._row.task} {self._row.state}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Job) and self.id == other.id

    def __hash__(self) -> int:
        return hash(self.id)

    @property
    def row(self) -> JobRow:
        """Everything on record about the job itself. `NotFound` where it is gone."""
        if self._row is None:
            self.refresh()
            assert self._row is not None
        return self._row

    @property
    def state(self) -> str:
        """Where it is in its lifecycle."""
        return self.row.state

    @property
    def attempt(self) -> int:
        """The number of the latest attempt; 0 before the first."""
        return self.row.attempt

    @property
    def task(self) -> str:
        """The name of its task."""
        return self.row.task

    @property
    def tenant(self) -> str:
        """Whose job it is."""
        return self.row.tenant

    @property
    def payload(self) -> Any:
        """The arguments as JSON values."""
        return jsondoor.decode(self.row.payload, depth_max=self._origin.settings.depth_max)

    @property
    def metadata(self) -> dict[str, Any]:
        """What the client attached."""
        if self.row.metadata is None:
            return {}
        depth_max = self._origin.settings.depth_max
        found: dict[str, Any] = jsondoor.decode(self.row.metadata, field="metadata", depth_max=depth_max)
        return found

    @property
    def key(self) -> str | None:
        """The key it was enqueued with, while the key is kept. Reads the database."""
        return None if (found := self._details()) is None else found.key

    @property
    def progress(self) -> dict[str, Any] | None:
        """What it reported last with `ctx.progress` in its current attempt: `{"done": 30, "total": 90}`. Reads the
        database."""
        found = self._details()
        if found is None or found.progress is None:
            return None
        told: dict[str, Any] = jsondoor.decode(found.progress, field="progress")
        return told

    def _details(self) -> JobDetails | None:
        return next(iter(self._origin.verbs.job_details([self.id])), None)

    @property
    def due_at(self) -> datetime:
        """When it may be claimed next, or could be."""
        return self.row.due_at

    @property
    def finished_at(self) -> datetime | None:
        """When it came to rest."""
        return self.row.finished_at

    @property
    def error(self) -> str | None:
        """Why it rests without success."""
        return self.row.error

    @property
    def rests(self) -> bool:
        """Whether it has come to rest: nothing happens to it by itself any more."""
        return self.row.state in JOB.rests

    @property
    def result(self) -> R:
        """What its function returned. `JobFailed` where it rests without success, `JobTimeout` where it goes on,
        `ResultExpired` where its task says for how long such results are kept, and that is over."""
        row = self.row
        if row.state == "succeeded":
            self._check_kept(row)
            result: R = self._origin.decode_result(row.result)
            return result
        if row.state in JOB.rests:
            raise JobFailed(self.id, row.state, row.error or self._last_move())
        raise JobTimeout(self.id, row.state, 0.0)

    def refresh(self) -> Job[R]:
        """Look again."""
        (row,) = self._origin.verbs.job_get([self.id])
        # Sent in a transaction that was rolled back, its id may have gone to another job since.
        if row is None or (self._nonce is not None and row.nonce != self._nonce):
            raise NotFound("job", str(self.id))
        self._row = row
        return self

    def wait(self, timeout: float | None = None) -> Job[R]:
        """This handle, when the job rests. `JobTimeout` (a TimeoutError) after `timeout` seconds; the job goes on."""
        for pause in self.pauses(timeout):
            self._origin.clock.sleep(pause)
        return self

    def pauses(self, timeout: float | None = None) -> Iterator[float]:
        """How `wait` waits: each step looks again and says how long to pause, until the job rests or time is up."""
        if timeout is not None and not timeout >= 0:
            raise InvalidInput("timeout", repr(timeout), "zero or more seconds, or None for as long as it takes")
        begun = self._origin.clock.monotonic()
        pause = _FIRST_PAUSE
        while not self.refresh().rests:
            waited = self._origin.clock.monotonic() - begun
            if timeout is not None and waited >= timeout:
                raise JobTimeout(self.id, self.row.state, waited)
            yield pause if timeout is None else min(pause, timeout - waited)
            pause = min(pause * 1.5, self._origin.settings.wait_poll)

    def _check_kept(self, row: JobRow) -> None:
        """Past its time a result is no more, whether or not anybody has swept it away yet."""
        until = row.result_dropped_at
        if row.result is not None and row.finished_at is not None and self._origin.result_ttl is not None:
            over_at = row.finished_at + timedelta(seconds=self._origin.result_ttl)
            until = over_at if self._origin.clock.now() >= over_at else None
        if until is not None:
            raise ResultExpired(self.id, until)

    def _last_move(self) -> str:
        lines = self._origin.verbs.transitions("job", str(self.id))
        return f"{lines[-1].trigger} by {lines[-1].actor}: {lines[-1].reason or 'no reason given'}" if lines else ""
