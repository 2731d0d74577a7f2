"""What a running function holds in its hand."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import Any, Protocol

__all__ = ["AsyncCommitBlock", "CommitBlock", "CommitBoundary", "Context", "TargetContext"]


class CommitBlock(Protocol):
    """The open commit boundary of an attempt: statements here happen exactly once, or not at all."""

    @property
    def connection(self) -> Any:
        """The driver's connection, for ORMs."""
        ...

    def execute(self, sql: str, params: dict[str, Any] | None = None) -> tuple[list[tuple[Any, ...]], int]:
        """Run a statement with `:name` parameters: its rows, and how many it changed."""
        ...

    def intend(self, call: Any, *, key: str | None = None) -> None:
        """Enqueue a call in this very transaction; it is carried out after the commit, under a stable key."""
        ...

    def result(self, value: object) -> None:
        """Store the job's result with the commit."""
        ...


class AsyncCommitBlock(Protocol):
    """The same in a coroutine: statements are awaited, and the loop goes on meanwhile."""

    @property
    def connection(self) -> Any:
        """The driver's connection, for ORMs."""
        ...

    async def execute(self, sql: str, params: dict[str, Any] | None = None) -> tuple[list[tuple[Any, ...]], int]:
        """Run a statement with `:name` parameters: its rows, and how many it changed."""
        ...

    def intend(self, call: Any, *, key: str | None = None) -> None:
        """Enqueue a call in this very transaction; it is carried out after the commit, under a stable key."""
        ...

    def result(self, value: object) -> None:
        """Store the job's result with the commit."""
        ...


class CommitBoundary(Protocol):
    """Opened with `with` in a plain function, with `async with` in a coroutine."""

    def __enter__(self) -> CommitBlock: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None: ...

    async def __aenter__(self) -> AsyncCommitBlock: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None: ...


class Context(Protocol):
    """One attempt at a job, as its function sees it."""

    @property
    def job_id(self) -> int:
        """The job."""
        ...

    @property
    def task(self) -> str:
        """The name of its task."""
        ...

    @property
    def attempt(self) -> int:
        """Which attempt this is, counted from 1; it is also the fence."""
        ...

    @property
    def effect_key(self) -> str:
        """A key for effects elsewhere: the same in every attempt at this job."""
        ...

    @property
    def tenant(self) -> str:
        """Whose job it is; empty for nobody's in particular."""
        ...

    @property
    def metadata(self) -> Mapping[str, Any]:
        """What the client attached to the job."""
        ...

    @property
    def correlation_id(self) -> str | None:
        """What ties this job to others."""
        ...

    @property
    def cancelled(self) -> bool:
        """Whether the job is to stop: a cancel was requested, or its time is over. A function that returns all the same
        has succeeded; one that raises is cancelled."""
        ...

    def raise_if_cancelled(self) -> None:
        """Raise `JobCancelled` if the job is to stop. Call it where it is safe to stop; let the exception pass."""
        ...

    def event(self, message: str, /, *, level: str = "info", key: str | None = None, **payload: Any) -> None:
        """Append a line to the job's record. `LeaseLost` where this attempt is no longer the holder."""
        ...

    def progress(self, done: float, total: float | None = None, message: str = "") -> None:
        """Say how far it is; shown to people, and a sign of life."""
        ...

    def spend(self, cost: float) -> None:
        """Say what this attempt has cost the limit of its task, in all, once that is known: more or less than the
        `cost` of the task, which was taken when it began. The difference goes back, or is taken now: then nobody begins
        until the bucket has made up. Said again, the last word counts. `WrongPlace` in a task without a rate."""
        ...

    def commit(self, connection: Any = None) -> CommitBoundary:
        """The commit boundary, to be opened: `with ctx.commit() as tx`. `LeaseLost`, `AlreadyCommitted`.

        On a `connection` of your own (what `app.using` takes) your statements are committed by it, in its transaction,
        together with the mark, or, in another database, with a marker there (`MarkerMissing`).
        """
        ...


class TargetContext(Context, Protocol):
    """One attempt at applying or reverting a target of a batch run; its `effect_key` names run, ref and action."""

    @property
    def run_id(self) -> int:
        """The run."""
        ...

    @property
    def ref(self) -> str:
        """The target."""
        ...

    @property
    def action(self) -> str:
        """`apply` or `revert`."""
        ...

    @property
    def event_key(self) -> str:
        """A key for a line that is to be written once in an attempt: run, target, action and attempt."""
        ...
