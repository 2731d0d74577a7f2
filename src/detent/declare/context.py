"""What a running function gets: its context and the commit block."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import Any, Protocol, TypeVar, overload

__all__ = ["AsyncTx", "CommitBoundary", "Context", "TargetContext", "Tx"]

T = TypeVar("T")


class Tx(Protocol):
    """The commit block of an attempt, in a plain function. Its statements take effect exactly once, or not at all."""

    @property
    def connection(self) -> Any:
        """The driver's connection, for ORMs."""
        ...

    def execute(self, sql: str, params: dict[str, Any] | None = None) -> tuple[list[tuple[Any, ...]], int]:
        """Run a statement with `:name` parameters. Return its rows, and how many rows it changed."""
        ...

    def intend(self, call: Any, *, key: str | None = None) -> None:
        """Enqueue a call in this transaction. It runs after the commit, under a stable key."""
        ...

    def result(self, value: object) -> None:
        """Store the job's result with the commit."""
        ...


class AsyncTx(Protocol):
    """The commit block of an attempt, in a coroutine. Statements are awaited and do not block the event loop."""

    @property
    def connection(self) -> Any:
        """The driver's connection, for ORMs."""
        ...

    async def execute(self, sql: str, params: dict[str, Any] | None = None) -> tuple[list[tuple[Any, ...]], int]:
        """Run a statement with `:name` parameters. Return its rows, and how many rows it changed."""
        ...

    def intend(self, call: Any, *, key: str | None = None) -> None:
        """Enqueue a call in this transaction. It runs after the commit, under a stable key."""
        ...

    def result(self, value: object) -> None:
        """Store the job's result with the commit."""
        ...


class CommitBoundary(Protocol):
    """The commit boundary: open it with `with` in a plain function, with `async with` in a coroutine."""

    def __enter__(self) -> Tx: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None: ...

    async def __aenter__(self) -> AsyncTx: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None: ...


class Context(Protocol):
    """The context of an attempt: the first argument of every task."""

    @property
    def job_id(self) -> int:
        """Id of the job."""
        ...

    @property
    def task(self) -> str:
        """Name of the task."""
        ...

    @property
    def attempt(self) -> int:
        """Number of this attempt, counted from 1."""
        ...

    @property
    def effect_key(self) -> str:
        """Idempotency key for effects elsewhere: the same in every attempt at this job."""
        ...

    @property
    def tenant(self) -> str:
        """Tenant of the job; empty if it has none."""
        ...

    @property
    def metadata(self) -> Mapping[str, Any]:
        """Metadata that the client attached to the job."""
        ...

    @property
    def correlation_id(self) -> str | None:
        """Correlation id of the job."""
        ...

    @property
    def cancelled(self) -> bool:
        """Whether the job should stop: a cancel was requested, or its time limit has passed. If the function returns
        normally, the job succeeds; if it raises, the job is cancelled."""
        ...

    def raise_if_cancelled(self) -> None:
        """Raise `JobCancelled` if the job should stop. Call it where it is safe to stop, and do not catch it."""
        ...

    def event(self, message: str, /, *, level: str = "info", key: str | None = None, **payload: Any) -> None:
        """Append an event to the job. An event with a key that was used before is ignored. `LeaseLost` if this attempt
        no longer holds the job."""
        ...

    def progress(self, done: float, total: float | None = None, message: str = "") -> None:
        """Report progress, for example 30 of 90. It is shown with the job, and counts as activity."""
        ...

    def spend(self, cost: float) -> None:
        """Report what this attempt has cost the limit of its task, in total. The `cost` of the task was taken when the
        attempt started; the difference is returned, or taken now. If the bucket goes below zero, no job starts until it
        has refilled. If called again, the last call counts. `WrongPlace` in a task without a rate."""
        ...

    @overload
    def result_of(self, node: str) -> Any: ...

    @overload
    def result_of(self, node: str, kind: type[T]) -> T: ...

    def result_of(self, node: str, kind: Any = Any) -> Any:
        """Return the result of another node of the graph that this job belongs to, as a value of type `kind`. The node
        must have succeeded, so it has to be before this one. `NotFound`, `WrongPlace`, `ResultExpired`."""
        ...

    def commit(self, connection: Any = None) -> CommitBoundary:
        """Return the commit boundary; open it as `with ctx.commit() as tx`. `LeaseLost`, `AlreadyCommitted`.

        With a `connection` of your own (as for `app.using`), your statements on it are committed together with the mark
        that the job has committed. If it leads to another database, a marker is written there (`MarkerMissing`).
        """
        ...


class TargetContext(Context, Protocol):
    """The context of an attempt to apply or revert a target. Its `effect_key` names run, ref and action."""

    @property
    def run_id(self) -> int:
        """Id of the run."""
        ...

    @property
    def ref(self) -> str:
        """Ref of the target."""
        ...

    @property
    def action(self) -> str:
        """`apply` or `revert`."""
        ...

    @property
    def event_key(self) -> str:
        """Key for an event that should be written once per attempt: run, target, action and attempt."""
        ...
