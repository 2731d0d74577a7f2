"""The context that a task's function gets in a worker."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import Context as CopiedContext
from contextvars import ContextVar, copy_context
from functools import cached_property
from typing import Any

from msgspec.structs import replace

from detent.declare.enqueue import EnqueueOptions, checked, new_job
from detent.declare.limit import check_spent
from detent.declare.running_attempt import running_attempt
from detent.declare.settings import Settings
from detent.declare.signals import JobCancelled
from detent.declare.task import Call, Task
from detent.errors import InvalidInput, NotFound, ResultExpired, WrongPlace
from detent.model import fork_count, json_codec
from detent.model.ids import Ids
from detent.model.limit_records import Charge
from detent.model.records import Claimed, NewEvent, NewJob, Outcome
from detent.model.stored_text import message_text
from detent.store.contract import Store
from detent.telemetry.tracing import current_traceparent
from detent.worker.attempt.commit_boundary import Boundary
from detent.worker.attempt.event_sink import EventSink
from detent.worker.attempt.foreign_boundary import ForeignBoundary

__all__ = ["AttemptContext", "current_attempt"]

_LEVELS = ("debug", "info", "warning", "error")

current_attempt: ContextVar[AttemptContext | None] = running_attempt
"""The attempt whose function runs in this thread or task, for logging."""


class AttemptContext:
    """The context of one attempt, which is held under a lease. See `Context` for what each name promises."""

    claimed_at: float | None = None
    suspect = False
    committed = False
    parked = False
    must_load = False
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
    def payload(self) -> str:
        """The arguments of the function, as JSON."""
        return self._claimed.payload

    def load(self) -> None:
        """Read what earlier attempts have left behind. A task has nothing to read."""

    def body(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function with what its kind of job needs around it."""
        return function

    def final_outcome(self, error: BaseException) -> Outcome | None:
        """Return the outcome if no further attempt can mend this error; None if the retry policy decides."""
        return None

    @property
    def claimed(self) -> Claimed:
        """The job as it was claimed."""
        return self._claimed

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
        found: dict[str, Any] = {} if self._claimed.metadata is None else json_codec.decode(self._claimed.metadata)
        return found

    @property
    def cancelled(self) -> bool:
        return self._cancelled

    def raise_if_cancelled(self) -> None:
        if self._cancelled:
            raise JobCancelled

    def request_cancel(self) -> None:
        """Tell the function to stop: a cancel was requested, or its time is over."""
        self._cancelled = True
        if self._on_cancel is not None:
            self._on_cancel()

    def on_cancel(self, act: Callable[[], None]) -> None:
        """Call `act` when the function is told to stop, from another thread; now, if it was told already."""
        self._on_cancel = act
        if self._cancelled:
            act()

    def event(self, message: str, /, *, level: str = "info", key: str | None = None, **payload: Any) -> None:
        if level not in _LEVELS:
            raise InvalidInput("level", repr(level), ", ".join(_LEVELS))
        text = json_codec.encode(payload, field="event", size_max=self.settings.event_max) if payload else None
        if key is not None:
            json_codec.text(key, field="event key", bytes_max=self.settings.key_max)
        self.write_line(level, message, text, key)

    def write_line(self, level: str, message: str, payload: str | None, key: str | None) -> None:
        """Append an event that was checked."""
        self._wrote = True
        line = NewEvent(
            job_id=self._claimed.job_id,
            attempt=self.attempt,
            level=level,
            message=message_text(message, bytes_max=self.settings.event_max),
            payload=payload,
            key=key,
        )
        if self._in_block and self._store.ids_by_transaction:
            # While the block is open, no other connection can write, that of the flusher included.
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
        charge = Charge(self._claimed.job_id, self.attempt, check_spent(cost))
        if self._in_block and self._store.ids_by_transaction:
            self._kept_charge = charge
        else:
            self._sink.charge(charge)

    def result_of(self, node: str, kind: Any = Any) -> Any:
        found = self._store.node_result(self.job_id, node)
        asked = f"ctx.result_of({node!r})"
        if found is None:
            raise NotFound("node", f"{node!r} in the graph of job {self.job_id}")
        if found.state != "succeeded":
            # Whether it succeeds in time would be chance, unless it is before this node.
            raise WrongPlace(asked, f"while that node is {found.state}", "in a node after it: graph.add(…, after=[…])")
        if found.dropped_at is not None:
            raise ResultExpired(found.job_id, found.dropped_at)
        if found.result is None:
            return None
        return json_codec.decode(found.result, kind, field=asked, depth_max=self.settings.depth_max)

    def commit(self, connection: Any = None) -> Boundary | ForeignBoundary:
        if self._task.options.probe is not None:
            raise WrongPlace(
                "ctx.commit()",
                f"in task {self._task.name!r}, which has a probe",
                "leave the probe out: an effect in ctx.commit() is always known",
            )
        self.unopened += 1
        return Boundary(self, self._store) if connection is None else ForeignBoundary(self, self._store, connection)

    def before_commit(self) -> None:
        """Write the events from before the commit. Raises `WrongPlace` inside another block of this attempt."""
        if self._in_block:
            raise WrongPlace("ctx.commit()", "inside a commit block of the same attempt", "write in the block there is")
        self.unopened -= 1
        self.flush_events()

    def flush_events(self) -> None:
        """Wait until the events written so far are durable."""
        if self._wrote:
            self._sink.flush()

    def block_entered(self) -> None:
        """Note that the commit block is open."""
        self._in_block = True

    def block_left(self) -> None:
        """Note that the commit block has ended, and write the events that waited for that."""
        self._in_block = False
        kept, self._kept = self._kept, ()
        for line in kept:
            self._sink.event(line)
        if self._kept_charge is not None:
            self._sink.charge(self._kept_charge)
            self._kept_charge = None

    def intent(self, call: Call[Any], key: str | None, number: int) -> NewJob:
        """Return the job of an intent. Its key is the same in every attempt."""
        made = f"{self.effect_key}/{checked(call).task.name}/{number}"
        if len(made.encode()) > self.settings.key_max:
            made = json_codec.fingerprint(made, "null")
        sending = EnqueueOptions(
            key=made if key is None else key,
            tenant=self.tenant,
            correlation_id=self.correlation_id or str(self.job_id),
            traceparent=current_traceparent(),
        )
        # The block assigns its id: on SQLite no other connection can reserve ids while it is open.
        return replace(new_job(call, sending, settings=self.settings), nonce=self._ids.nonce())

    def encode_result(self, value: object) -> str | None:
        """Return a result in the form in which the task stores it."""
        return self._task.encode_result(value)

    def copy_variables(self) -> CopiedContext:
        """Return a copy of the context variables in which this attempt is the current one."""
        copied = copy_context()
        copied.run(current_attempt.set, self)
        return copied

    @contextmanager
    def current(self) -> Iterator[None]:
        """Make this the current attempt while its function runs here: its log records become events.

        A function that forks may return in the copy of the process too. The copy holds no lease and must not go on as a
        worker: it exits here.
        """
        forks_before = fork_count.count
        token = current_attempt.set(self)
        try:
            yield
        finally:
            if fork_count.count != forks_before:
                os._exit(0)
            current_attempt.reset(token)
