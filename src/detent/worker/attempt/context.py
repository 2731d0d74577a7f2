"""The context of a real attempt."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import Context as CopiedContext
from contextvars import ContextVar, copy_context
from functools import cached_property
from typing import Any, Protocol

from msgspec.structs import replace

from detent.client.client import one
from detent.declare.cost import check_spent
from detent.declare.enqueue import Sending, checked, new_job
from detent.declare.settings import Settings
from detent.declare.signals import JobCancelled
from detent.declare.task import Call, Task
from detent.errors import InvalidInput, WrongPlace
from detent.model import jsondoor
from detent.model.ids import Ids
from detent.model.limit_records import Charge
from detent.model.records import Claimed, NewEvent, NewJob
from detent.model.sanitize import message_text
from detent.store.contract import Store
from detent.worker.attempt.commit_boundary import Boundary
from detent.worker.attempt.foreign_boundary import ForeignBoundary

__all__ = ["AttemptContext", "DirectSink", "EventSink", "current_attempt"]

_LEVELS = ("debug", "info", "warning", "error")

current_attempt: ContextVar[AttemptContext | None] = ContextVar("current_attempt", default=None)
"""The attempt whose function runs here, for logging."""


class EventSink(Protocol):
    """Where lines go."""

    def event(self, line: NewEvent) -> None:
        """Take a line."""
        ...

    def charge(self, charge: Charge) -> None:
        """Take what an attempt has cost."""
        ...

    def flush(self, timeout: float | None = None) -> bool:
        """Return when every line taken is durable."""
        ...


class DirectSink:
    """Each line at once, and its refusal raised."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def event(self, line: NewEvent) -> None:
        """Write the line."""
        one(self._store.event_append([line])[0])

    def charge(self, charge: Charge) -> None:
        """Write it."""
        one(self._store.limit_charge([charge])[0])

    def flush(self, timeout: float | None = None) -> bool:
        """Nothing waits."""
        return True


class AttemptContext:
    """One attempt at a job, held under its lease. See `Context` for what each name promises."""

    committed = False
    stored_result = False
    unopened = 0
    _cancelled = False
    _on_cancel: Callable[[], None] | None = None
    _wrote = False
    _in_block = False
    _kept: tuple[NewEvent, ...] = ()
    _kept_charge: Charge | None = None

    def __init__(
        self, claimed: Claimed, task: Task[..., Any, Any], store: Store, sink: EventSink, ids: Ids, settings: Settings
    ) -> None:
        self._claimed = claimed
        self._task = task
        self._store = store
        self._sink = sink
        self._ids = ids
        self.settings = settings

    @property
    def job_id(self) -> int:
        return self._claimed.job_id

    @property
    def task(self) -> str:
        return self._task.name

    @property
    def attempt(self) -> int:
        return self._claimed.attempt

    @property
    def tenant(self) -> str:
        return self._claimed.tenant

    @property
    def effect_key(self) -> str:
        return f"{self._store.identity_of(self.job_id)}/{self._claimed.tenant}/job/{self.job_id}"

    @property
    def correlation_id(self) -> str | None:
        return self._claimed.correlation_id

    @cached_property
    def metadata(self) -> Mapping[str, Any]:
        found: dict[str, Any] = {} if self._claimed.metadata is None else jsondoor.decode(self._claimed.metadata)
        return found

    @property
    def cancelled(self) -> bool:
        return self._cancelled

    def raise_if_cancelled(self) -> None:
        if self._cancelled:
            raise JobCancelled

    def request_cancel(self) -> None:
        """Somebody wants this job to stop, or its time is over."""
        self._cancelled = True
        if self._on_cancel is not None:
            self._on_cancel()

    def on_cancel(self, act: Callable[[], None]) -> None:
        """Do this, from another thread, when the job is to stop; now, if it already is."""
        self._on_cancel = act
        if self._cancelled:
            act()

    def event(self, message: str, /, *, level: str = "info", key: str | None = None, **payload: Any) -> None:
        if level not in _LEVELS:
            raise InvalidInput("level", repr(level), ", ".join(_LEVELS))
        text = jsondoor.encode(payload, field="event", size_max=self.settings.event_max) if payload else None
        if key is not None:
            jsondoor.text(key, field="event key", bytes_max=self.settings.key_max)
        self._wrote = True
        line = NewEvent(
            job_id=self.job_id,
            attempt=self.attempt,
            level=level,
            message=message_text(message, bytes_max=self.settings.event_max),
            payload=text,
            key=key,
        )
        if self._in_block and self._store.ids_by_transaction:
            # While the block is open nobody else can write: not even who writes the lines.
            self._kept += (line,)
        else:
            self._sink.event(line)

    def progress(self, done: float, total: float | None = None, message: str = "") -> None:
        payload: dict[str, Any] = {"done": done} if total is None else {"done": done, "total": total}
        self.event(message or "progress", **payload)

    def spend(self, cost: float) -> None:
        limit = self._task.options.limit
        if limit is None or limit.rate is None:
            found = f"in task {self._task.name!r}, which has no rate"
            raise WrongPlace("ctx.spend()", found, "in a task with limit=Limit(rate=…)")
        charge = Charge(self.job_id, self.attempt, check_spent(cost))
        if self._in_block and self._store.ids_by_transaction:
            self._kept_charge = charge
        else:
            self._sink.charge(charge)

    def commit(self, connection: Any = None) -> Boundary | ForeignBoundary:
        if self._task.options.probe is not None:
            raise WrongPlace(
                "ctx.commit()",
                f"in task {self._task.name!r}, which has a probe",
                "leave the probe out: what is committed here is known, and nobody need find out",
            )
        self.unopened += 1
        return Boundary(self, self._store) if connection is None else ForeignBoundary(self, self._store, connection)

    def before_commit(self) -> None:
        """What was said before the commit is on record before it. `WrongPlace` inside another block of this attempt."""
        if self._in_block:
            raise WrongPlace("ctx.commit()", "inside a commit block of the same attempt", "write in the block there is")
        self.unopened -= 1
        if self._wrote:
            self._sink.flush()

    def block_entered(self) -> None:
        """From now on the block is open."""
        self._in_block = True

    def block_left(self) -> None:
        """What was said in the block can be written now, whatever became of it."""
        self._in_block = False
        kept, self._kept = self._kept, ()
        for line in kept:
            self._sink.event(line)
        if self._kept_charge is not None:
            self._sink.charge(self._kept_charge)
            self._kept_charge = None

    def intent(self, call: Call[Any], key: str | None, number: int) -> NewJob:
        """The job of an intent: under a key that every attempt would make again."""
        made = f"{self.effect_key}/{checked(call).task.name}/{number}"
        if len(made.encode()) > self.settings.key_max:
            made = jsondoor.fingerprint(made, "null")
        sending = Sending(
            key=made if key is None else key,
            tenant=self.tenant,
            correlation_id=self.correlation_id or str(self.job_id),
        )
        # Its id is given by the block: on SQLite nobody else can reserve any while it is open.
        return replace(new_job(call, sending, settings=self.settings), nonce=self._ids.nonce())

    def encode_result(self, value: object) -> str | None:
        """A result as its task stores it."""
        return self._task.encode_result(value)

    def alone(self) -> CopiedContext:
        """A set of context variables of its own, in which this attempt is the current one."""
        copied = copy_context()
        copied.run(current_attempt.set, self)
        return copied

    @contextmanager
    def current(self) -> Iterator[None]:
        """The function of this attempt runs here: what it logs becomes its lines.

        A function that forks may come back twice. The copy holds nothing and must not go on as a worker: it ends here.
        """
        process = os.getpid()
        token = current_attempt.set(self)
        try:
            yield
        finally:
            if os.getpid() != process:
                os._exit(0)
            current_attempt.reset(token)
