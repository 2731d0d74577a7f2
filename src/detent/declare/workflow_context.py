"""What the function of a workflow gets: a context with steps, waits and children."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Concatenate, Generic, NoReturn, ParamSpec, Protocol, TypeVar, overload
from uuid import UUID

from detent.declare.context import AsyncTx, Context, Tx
from detent.declare.task import Call
from detent.declare.workflow import Local, Seconds, Step, StepCall
from detent.model.ids import Random

__all__ = [
    "Arrival",
    "AsyncChildGroup",
    "AsyncGroupResult",
    "AsyncWorkflowContext",
    "Child",
    "ChildGroup",
    "GroupResult",
    "Stream",
    "Wait",
    "WorkflowContext",
]

P = ParamSpec("P")
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Wait(Generic[T]):
    """Something to wait for with `ctx.first`: what `ctx.on` and `ctx.ended` return. `name` is that of the signal, or
    the path of the child's step."""

    kind: str
    name: str
    type: Any
    child_id: int | None = None


@dataclass(frozen=True, slots=True)
class Arrival(Generic[T]):
    """What ended a `ctx.first`: the wait, and its value."""

    wait: Wait[T]
    value: T


@dataclass(frozen=True, slots=True)
class Child(Generic[T_co]):
    """A job that a workflow has spawned: its id, and the name under which it was spawned."""

    id: int
    name: str
    path: str
    task: str
    detached: bool = False


class GroupResult(Protocol[T_co]):
    """The end of a group of children. Results and failures are read page by page."""

    @property
    def total(self) -> int:
        """Number of children."""
        ...

    @property
    def succeeded(self) -> int:
        """Number of children that succeeded."""
        ...

    @property
    def failed(self) -> int:
        """Number of children that failed, were cancelled, or are quarantined."""
        ...

    def results(self) -> Iterator[T_co]:
        """Return the results of the children that succeeded, in the order in which they were spawned."""
        ...

    def failures(self) -> Iterator[Child[T_co]]:
        """Return the children that did not succeed."""
        ...


class AsyncGroupResult(Protocol[T_co]):
    """The end of a group of children, in an async workflow. Results and failures are read page by page."""

    total: int
    succeeded: int
    failed: int

    def results(self) -> AsyncIterator[T_co]:
        """Return the results of the children that succeeded, in the order in which they were spawned: `async for`."""
        ...

    def failures(self) -> AsyncIterator[Child[T_co]]:
        """Return the children that did not succeed: `async for`."""
        ...


class ChildGroup(Protocol[T_co]):
    """Children that were spawned together."""

    def join(self, *, tolerate: int | str = 0, wait: bool = False) -> GroupResult[T_co]:
        """Wait until all have ended. `ChildFailed` if more than `tolerate` (a number, or a share such as `"5%"`) did
        not succeed. With `wait`, children in quarantine are waited for, since a retry may still save them."""
        ...


class AsyncChildGroup(Protocol[T_co]):
    """Children that were spawned together, in an async workflow."""

    async def join(self, *, tolerate: int | str = 0, wait: bool = False) -> AsyncGroupResult[T_co]:
        """Do the same as `ChildGroup.join`."""
        ...


class Stream(Protocol):
    """Text for people, which is followed while it is written: what `ctx.stream` returns."""

    name: str

    def write(self, text: str) -> None:
        """Append text; it is not a line, so put line breaks where you want them. It is shown within a second.

        All streams of an attempt together may write 64 KB per second, and 256 KB at once. More than that is left out,
        and the stream says so.
        """
        ...


class _AnyWorkflowContext(Context, Protocol):
    """What is the same for plain and async functions."""

    @property
    def version(self) -> int:
        """The version of the code under which this workflow began. Branch on it to change a workflow in progress."""
        ...

    @property
    def generation(self) -> int:
        """How often the workflow has continued as new, counted from 1."""
        ...

    @property
    def replaying(self) -> bool:
        """Whether recorded steps are still ahead: what is done now was done before."""
        ...

    @property
    def random(self) -> Random:
        """Random numbers that are the same in every attempt."""
        ...

    def now(self) -> datetime:
        """Return the time of the last recorded step, or the end of the last sleep, the same in every attempt."""
        ...

    def uuid(self, name: str) -> UUID:
        """Return an id that is the same in every attempt; another one for each name."""
        ...

    @overload
    def on(self, signal: str) -> Wait[Any]: ...

    @overload
    def on(self, signal: str, kind: type[T]) -> Wait[T]: ...

    def on(self, signal: str, kind: Any = Any) -> Wait[Any]:
        """Describe a wait for a signal, for `ctx.first`."""
        ...

    def ended(self, child: Child[T]) -> Wait[T]:
        """Describe a wait for the end of a child, for `ctx.first`."""
        ...

    def token(self, signal: str, *, next_wait_only: bool = False) -> str:
        """Return a token for a link or a callback, the same in every attempt: whoever has it may send this signal to
        this workflow, once. Redeem it with `POST /hooks/signals/{token}`, `app.workflows.redeem` or
        `detent workflows redeem`. Each call makes another token. With `next_wait_only` it counts for the next wait
        for this signal only, and is refused with `WaitOver` once that wait has ended."""
        ...

    def stream(self, name: str) -> Stream:
        """Return a stream for text that people follow, such as the answer of a model. It is no step: it may be written
        inside of steps and outside, and an attempt that runs again writes again. What is written names its attempt.
        Read it with `job.stream(name)`."""
        ...

    def set_status(self, **facts: Any) -> None:
        """Show facts as `job.status`, and to those who follow the job."""
        ...


class WorkflowContext(_AnyWorkflowContext, Protocol):
    """The context of a workflow whose function is plain."""

    def step(self, step: str | Step[T], fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a function and record its value. A recorded step returns its value without a call.

        The value is on disk before this returns. It must be JSON, and is decoded to the declared return type. If the
        function raises, nothing is recorded and the error goes on: the next attempt calls it again. `StepAmbiguous`,
        `WorkflowDrift`, `HistoryFull`, `InvalidPayload`.
        """
        ...

    def transact(
        self, step: str | Step[T], fn: Callable[Concatenate[Tx, P], T], /, *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Call a function with a transaction of Detent's database, and record its value in the same transaction: what
        it writes there happens exactly once."""
        ...

    def scope(
        self, name: str, fn: Callable[Concatenate[WorkflowContext, P], T], /, *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Call a part of the workflow with a context of its own: its steps have names of their own. When it has ended,
        its value is one record, and the steps inside are not read again."""
        ...

    def gather(self, *calls: StepCall[T], slots: int = 8) -> list[T]:
        """Run steps at the same time, on threads; return their values. If some fail, the others are recorded first."""
        ...

    def sleep(self, seconds: Seconds) -> None:
        """Wait, without a worker. The end of the wait is fixed when it is first reached, by the database's clock."""
        ...

    def sleep_until(self, when: datetime | Local) -> None:
        """Wait until that time, without a worker. `InvalidInput` for a time without a zone."""
        ...

    @overload
    def wait_for(self, signal: str, *, timeout: Seconds | None = None) -> Any: ...

    @overload
    def wait_for(self, signal: str, kind: type[T], *, timeout: Seconds | None = None) -> T: ...

    def wait_for(self, signal: str, kind: Any = Any, *, timeout: Seconds | None = None) -> Any:
        """Wait for a signal, without a worker, and return its payload. Signals of one name are taken in the order in
        which they were sent, each once, also those that were sent before. `WaitTimeout`; `InvalidPayload` for a payload
        that does not fit `kind`, in every attempt: it is on record as taken."""
        ...

    def first(self, *waits: Wait[Any], timeout: Seconds | None = None) -> Arrival[Any]:
        """Wait for whichever comes first. `WaitTimeout`; `InvalidPayload` as `wait_for`."""
        ...

    def spawn(self, call: Call[T], *, name: str | None = None, detached: bool = False) -> Child[T]:
        """Enqueue a child. A detached one outlives a cancel of this workflow."""
        ...

    def join(self, child: Child[T], *, wait: bool = False) -> T:
        """Wait for the end of a child, without a worker, and return its result. `ChildFailed`. With `wait`, a child in
        quarantine is waited for, since a retry may still save it."""
        ...

    def spawn_many(self, name: str, calls: Iterable[Call[T]], *, limit: int | None = None) -> ChildGroup[T]:
        """Enqueue many children, in portions. At most `limit` of them run at once; those that are parked do not
        count. `InvalidInput` if their task has a limit of its own: a job is under one, besides that of its queue."""
        ...

    def continue_as_new(self, **payload: Any) -> NoReturn:
        """Begin again with other arguments and an empty history: the same job, key and mailbox."""
        ...


class AsyncWorkflowContext(_AnyWorkflowContext, Protocol):
    """The context of a workflow whose function is async. Everything that writes or waits is awaited; run steps at the
    same time with `asyncio.gather` or a `TaskGroup`."""

    async def step(self, step: str | Step[T], fn: Callable[P, Awaitable[T]], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Do the same as `WorkflowContext.step`."""
        ...

    async def transact(
        self,
        step: str | Step[T],
        fn: Callable[Concatenate[AsyncTx, P], Awaitable[T]],
        /,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """Do the same as `WorkflowContext.transact`."""
        ...

    async def scope(
        self,
        name: str,
        fn: Callable[Concatenate[AsyncWorkflowContext, P], Coroutine[Any, Any, T]],
        /,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """Do the same as `WorkflowContext.scope`."""
        ...

    async def sleep(self, seconds: Seconds) -> None:
        """Do the same as `WorkflowContext.sleep`."""
        ...

    async def sleep_until(self, when: datetime | Local) -> None:
        """Do the same as `WorkflowContext.sleep_until`."""
        ...

    @overload
    async def wait_for(self, signal: str, *, timeout: Seconds | None = None) -> Any: ...

    @overload
    async def wait_for(self, signal: str, kind: type[T], *, timeout: Seconds | None = None) -> T: ...

    async def wait_for(self, signal: str, kind: Any = Any, *, timeout: Seconds | None = None) -> Any:
        """Do the same as `WorkflowContext.wait_for`."""
        ...

    async def first(self, *waits: Wait[Any], timeout: Seconds | None = None) -> Arrival[Any]:
        """Do the same as `WorkflowContext.first`."""
        ...

    async def spawn(self, call: Call[T], *, name: str | None = None, detached: bool = False) -> Child[T]:
        """Do the same as `WorkflowContext.spawn`."""
        ...

    async def join(self, child: Child[T], *, wait: bool = False) -> T:
        """Do the same as `WorkflowContext.join`."""
        ...

    async def spawn_many(self, name: str, calls: Iterable[Call[T]], *, limit: int | None = None) -> AsyncChildGroup[T]:
        """Do the same as `WorkflowContext.spawn_many`."""
        ...

    async def continue_as_new(self, **payload: Any) -> NoReturn:
        """Do the same as `WorkflowContext.continue_as_new`."""
        ...
